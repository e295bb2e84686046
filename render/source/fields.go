package source

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/agnivade/levenshtein"
)

type structFields struct {
	names  []string // sorted
	index  map[string][]int
	folded map[string]string // lower case -> name
}

var fieldCache sync.Map // reflect.Type -> *structFields

func fieldsOf(t reflect.Type) *structFields {
	if f, ok := fieldCache.Load(t); ok {
		return f.(*structFields)
	}
	f := &structFields{index: map[string][]int{}, folded: map[string]string{}}
	f.add(t, nil)
	for name := range f.index {
		f.names = append(f.names, name)
	}
	slices.Sort(f.names)
	for _, name := range f.names {
		f.folded[strings.ToLower(name)] = name
	}
	fieldCache.Store(t, f)
	return f
}

// add adds the fields named as in encoding/json; a field of the struct itself wins over one of
// an embedded struct.
func (f *structFields) add(t reflect.Type, prefix []int) {
	var embedded []reflect.StructField
	for i := range t.NumField() {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case field.Anonymous && name == "":
			embedded = append(embedded, field)
		case field.IsExported():
			name = cmp.Or(name, field.Name)
			if _, taken := f.index[name]; !taken {
				f.index[name] = append(slices.Clone(prefix), i)
			}
		}
	}
	for _, field := range embedded {
		f.add(field.Type, append(slices.Clone(prefix), field.Index...))
	}
}

// suggest returns the name that an unknown key most likely means, or "".
func suggest(key string, names []string) string {
	if len(key) > 64 {
		return ""
	}
	key = strings.ToLower(key)
	best, distance := "", max(2, len(key)/3)+1
	for _, name := range names {
		if d := levenshtein.ComputeDistance(key, strings.ToLower(name)); d < distance && d < len(name) {
			best, distance = name, d
		}
	}
	return best
}
