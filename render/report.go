package render

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/render/source"
)

// report makes one report of all problems of a cluster's files: in order, what has one
// cause once, and no advice on output where there is none.
func (in *Input) report(list problem.List) problem.List {
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
	list = oncePerFile(list)
	unpinned := func(p problem.Problem) bool { return p.Code == problem.UnpinnedImage }
	last := slices.Clone(list)
	list = slices.DeleteFunc(list, unpinned)
	if list.Err() == nil {
		list = append(list, slices.DeleteFunc(last, func(p problem.Problem) bool { return !unpinned(p) })...)
	}
	return list
}

// oncePerFile gathers the old spellings of a file in the first one's warning.
func oncePerFile(list problem.List) (out problem.List) {
	first := map[string]int{}
	others := map[string][]string{}
	for _, p := range list {
		i, seen := first[p.File]
		switch {
		case p.Code != problem.Deprecated:
			out = append(out, p)
		case !seen:
			first[p.File] = len(out)
			out = append(out, p)
		default:
			others[p.File] = append(others[p.File], fmt.Sprintf("%s on line %d: %s", p.Field, p.Line, p.Expected))
			out[i].Hint = "also " + strings.Join(others[p.File], "; ")
		}
	}
	return out
}
