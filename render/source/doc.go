// Package source reads one YAML document into Go values and remembers where
// each field stands, so that every problem found later can name its line.
//
// It is careful with secrets: a field that the Go type does not have is never
// looked at, and no message quotes text that could not be read.
package source
