package main

import (
	"testing"
)

func TestEquivalents(t *testing.T) {
	if _, err := readEquivalents(equivalents); err != nil {
		t.Error(err)
	}
	if _, err := readEquivalents("pkg/x.go: true inverted\n"); err == nil {
		t.Error("no reason is one")
	}
}
