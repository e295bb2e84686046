package command

import (
	"fmt"
	"io"
	"reflect"
	"slices"
)

// Output is a kind of JSON object that commands print.
type Output struct {
	// Name is the argument of 'vipgen schema --of'.
	Name string
	Kind string
	Type reflect.Type
}

// OutputOf returns the kind of objects of the type T.
func OutputOf[T any](name, kind string) Output { return Output{name, kind, reflect.TypeFor[T]()} }

// Outputs are all outputs of a program.
type Outputs []Output

// Kind returns the kind of an object, or of a pointer to one.
func (o Outputs) Kind(v any) (string, error) {
	t := reflect.TypeOf(v)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	i := slices.IndexFunc(o, func(o Output) bool { return o.Type == t })
	if i < 0 {
		return "", fmt.Errorf("%v is not a kind of output", t)
	}
	return o[i].Kind, nil
}

// Print prints an object as JSON, with its kind.
func (o Outputs) Print(w io.Writer, v any) error {
	kind, err := o.Kind(v)
	if err != nil {
		return err
	}
	return Object(w, kind, v)
}
