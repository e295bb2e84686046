// Package source reads one YAML document into Go values and remembers the position of each
// field, so that every problem found later can name its line.
//
// It is careful with secrets: a field that the Go type does not have is never read, and no
// message quotes unreadable text.
package source
