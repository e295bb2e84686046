// Package lists derives lists from others, which the standard library's slices lacks.
package lists

import (
	"fmt"
	"strings"
)

// Map returns f of each element, in order; nil for an empty list.
func Map[S ~[]T, T, U any](list S, f func(T) U) (out []U) {
	for _, x := range list {
		out = append(out, f(x))
	}
	return out
}

// Join joins elements with sep between.
func Join[S ~[]T, T fmt.Stringer](list S, sep string) string {
	return strings.Join(Map(list, T.String), sep)
}
