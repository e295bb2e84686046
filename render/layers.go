package render

import (
	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/render/source"
)

// layers are the documents of a value: a cluster's VIPConfig, then the defaults of its fleet.
// Either may be nil.
type layers struct{ own, shared *source.Document }

func layer(d *source.Document) layers { return layers{own: d} }

// locate fills in the position of a problem's field: in the first layer that has it, else at
// its nearest parent in the first layer.
func (l layers) locate(p problem.Problem) problem.Problem {
	at := l.own
	if at == nil || l.shared != nil && !at.Has(p.Field) && l.shared.Has(p.Field) {
		at = l.shared
	}
	if at == nil {
		return p
	}
	return at.Locate(problem.List{p})[0]
}
