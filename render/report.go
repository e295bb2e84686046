package render

import (
	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/render/source"
)

// Report merges all problems of a cluster's files into one sorted report, with each cause once.
func (in *Input) Report(list problem.List) problem.List {
	list.Sort()
	docs := []*source.Document{in.vipDocs.own, in.vipDocs.shared}
	if in.Install != nil {
		docs = append(docs, in.Install.Doc)
	}
	if in.Agent != nil {
		docs = append(docs, in.Agent.Doc)
	}
	for _, d := range docs {
		if d != nil {
			list = d.Unfinished(list)
		}
	}
	return list.Final()
}
