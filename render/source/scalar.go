package source

import (
	"encoding"
	"fmt"
	"net/netip"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/vipgen/vipgen/api/problem"
)

// kind names the type of a scalar. Kubernetes' tools read YAML 1.1, where yes, no, on and off
// are bools too.
func kind(n *yaml.Node) string {
	tag := n.ShortTag()
	if tag == "!!str" && n.Style == 0 {
		switch strings.ToLower(n.Value) {
		case "yes", "no", "on", "off":
			return "!!bool"
		}
	}
	return tag
}

// describe names the kind of a node, without its value.
func describe(n *yaml.Node) string {
	t := target(n)
	switch t.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	switch kind(t) {
	case "!!null":
		return "nothing"
	case "!!bool":
		return "a bool"
	case "!!int", "!!float":
		return "a number"
	case "!!str", "!!timestamp", "!!merge":
		return "text"
	}
	return "a value with a tag"
}

var (
	typeAddr   = reflect.TypeFor[netip.Addr]()
	typePrefix = reflect.TypeFor[netip.Prefix]()
)

func expected(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == typeAddr:
		return "an IP address"
	case t == typePrefix:
		return "a network, such as 192.0.2.0/24"
	case reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return "text"
	}
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return "a mapping"
	case reflect.Slice:
		return "a list"
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "text"
	}
	return "a whole number"
}

// plainText returns the text of a scalar that is valid as text.
func (d *decoder) plainText(n *yaml.Node, v reflect.Value) (string, bool) {
	t := target(n)
	if t.Kind != yaml.ScalarNode {
		return "", d.wrongType(n, v)
	}
	switch kind(t) {
	case "!!str", "!!int", "!!float", "!!timestamp", "!!merge":
		return t.Value, true
	case "!!bool":
		d.report(n, problem.Problem{
			Code: problem.WrongType, Found: "the bool " + problem.Quote(t.Value), Expected: expected(v.Type()),
			Hint: fmt.Sprintf("quote it if it is text: %q", t.Value),
		})
		return "", false
	}
	return "", d.wrongType(n, v)
}

func (d *decoder) text(n *yaml.Node, v reflect.Value) bool {
	s, ok := d.plainText(n, v)
	if ok {
		v.SetString(s)
	}
	return ok
}

func (d *decoder) unmarshalText(n *yaml.Node, v reflect.Value, u encoding.TextUnmarshaler) bool {
	s, ok := d.plainText(n, v)
	if !ok || s == "" && !d.inList() {
		return false
	}
	err := u.UnmarshalText([]byte(s))
	if err == nil && s != "" {
		return true
	}
	v.SetZero()
	p := problem.Problem{Found: problem.Quote(s), Expected: expected(v.Type())}
	switch v.Type() {
	case typeAddr:
		p.Code = problem.BadAddress
	case typePrefix:
		p.Code = problem.BadNetwork
	default:
		p.Code, p.Expected = problem.BadValue, "another value"
		if err != nil {
			p.Expected = err.Error()
		}
	}
	d.report(n, p)
	return false
}

func (d *decoder) boolean(n *yaml.Node, v reflect.Value) bool {
	t := target(n)
	if t.Kind != yaml.ScalarNode || kind(t) != "!!bool" {
		return d.wrongScalar(n, v)
	}
	switch strings.ToLower(t.Value) {
	case "true", "yes", "on":
		v.SetBool(true)
	default:
		v.SetBool(false)
	}
	return true
}

func (d *decoder) integer(n *yaml.Node, v reflect.Value) bool {
	t := target(n)
	if t.Kind != yaml.ScalarNode || kind(t) != "!!int" {
		return d.wrongScalar(n, v)
	}
	bits := v.Type().Bits()
	digits := strings.TrimPrefix(t.Value, "+")
	var err error
	if v.CanInt() {
		var i int64
		if i, err = strconv.ParseInt(digits, 0, bits); err == nil {
			v.SetInt(i)
		}
	} else {
		var u uint64
		if u, err = strconv.ParseUint(digits, 0, bits); err == nil {
			v.SetUint(u)
		}
	}
	if err != nil {
		d.report(n, problem.Problem{
			Code: problem.BadValue, Found: problem.Quote(t.Value), Expected: rangeOf(v),
		})
	}
	return err == nil
}

func rangeOf(v reflect.Value) string {
	bits := v.Type().Bits()
	if v.CanInt() {
		limit := uint64(1) << (bits - 1)
		return fmt.Sprintf("a whole number from -%d to %d", limit, limit-1)
	}
	return fmt.Sprintf("a whole number from 0 to %d", ^uint64(0)>>(64-bits))
}

// wrongScalar is wrongType that shows the scalar, for a field that vipgen reads.
func (d *decoder) wrongScalar(n *yaml.Node, v reflect.Value) bool {
	name, ok := map[string]string{"text": "text", "a number": "number", "a bool": "bool"}[describe(n)]
	if !ok {
		return d.wrongType(n, v)
	}
	d.report(n, problem.Problem{
		Code:     problem.WrongType,
		Found:    fmt.Sprintf("the %s %s", name, problem.Quote(target(n).Value)),
		Expected: expected(v.Type()),
	})
	return false
}
