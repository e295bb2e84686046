// Package lists has what the standard library's slices lacks: lists made of others.
package lists

import (
	"fmt"
	"strings"
)

// Map gives what f makes of each element, in their order; nil for an empty list.
func Map[S ~[]T, T, U any](list S, f func(T) U) (out []U) {
	for _, x := range list {
		out = append(out, f(x))
	}
	return out
}

// Join writes elements one after the other, with sep between.
func Join[S ~[]T, T fmt.Stringer](list S, sep string) string {
	return strings.Join(Map(list, T.String), sep)
}
