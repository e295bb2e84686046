// Package lazy initialises values of package variables at their first use: a program that runs
// for milliseconds spends most of them on variables that it does not use.
package lazy

import (
	"regexp"
	"sync"
)

// Regexp returns a function that compiles the expression at its first call, as
// regexp.MustCompile does.
func Regexp(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
