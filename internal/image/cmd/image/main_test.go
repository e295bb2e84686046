package main

import (
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/image"
)

func TestParse(t *testing.T) {
	for list, want := range map[string]string{
		"linux/amd64":             "",
		"linux/arm64,linux/s390x": "",
		"linux/riscv64":           "expected one of linux/amd64,linux/arm64,linux/ppc64le,linux/s390x",
		"amd64":                   "expected one of",
		"":                        "expected one of",
		"linux/amd64,":            "expected one of",
		"a/b/c/d":                 "a/b/c/d",
	} {
		got, err := parse(list, image.Platforms())
		if want == "" && (err != nil || len(got) != strings.Count(list, ",")+1) {
			t.Errorf("%q: %v, %v", list, got, err)
		}
		if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", list, err, want)
		}
	}
}

func TestEpoch(t *testing.T) {
	for text, want := range map[string]int64{"": 0, "0": 0, "1700000000": 1700000000, "-1": -1, "now": -1} {
		t.Setenv("SOURCE_DATE_EPOCH", text)
		got, err := epoch()
		if want < 0 && (err == nil || !strings.Contains(err.Error(), "seconds since 1970")) || want >= 0 && (err != nil || got.Unix() != want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}
