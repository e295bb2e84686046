// Package lists derives lists from others, which the standard library's slices lacks.
package lists

import (
	"fmt"
	"slices"
	"strings"
)

// Map returns f of each element, in order; nil for an empty list.
func Map[S ~[]T, T, U any](list S, f func(T) U) (out []U) {
	for _, x := range list {
		out = append(out, f(x))
	}
	return out
}

// FlatMap returns the elements of f of each element, in order; nil if there are none.
func FlatMap[S ~[]T, T, U any](list S, f func(T) []U) (out []U) {
	for _, x := range list {
		out = append(out, f(x)...)
	}
	return out
}

// Filter returns a new list of the elements to keep, in order; nil if there are none.
func Filter[S ~[]T, T any](list S, keep func(T) bool) (out S) {
	for _, x := range list {
		if keep(x) {
			out = append(out, x)
		}
	}
	return out
}

// Add appends the elements that the list lacks, each once.
func Add[S ~[]T, T comparable](list S, more ...T) S {
	for _, x := range more {
		if !slices.Contains(list, x) {
			list = append(list, x)
		}
	}
	return list
}

// Summarize joins the first texts with sep between, most at most, and counts the others.
func Summarize(list []string, most int, sep string) string {
	if n := len(list) - most; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:most], sep), n)
	}
	return strings.Join(list, sep)
}

// Join joins elements with sep between.
func Join[S ~[]T, T fmt.Stringer](list S, sep string) string {
	return strings.Join(Map(list, T.String), sep)
}
