// Package fileio opens regular files only, and replaces files atomically.
package fileio
