package testkit

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// voids are elements without an end tag.
var voids = []string{"meta", "br"}

// loads are attributes that could load a resource.
var loads = []string{"src", "srcset", "href", "xlink:href", "action", "data", "poster", "background"}

// CheckPage reports errors of a page that internal/page wrote: elements that do not nest,
// scripts, loaded resources, links and ids that do not match, or unprintable characters. It
// returns the page's text, a line for each piece.
func CheckPage(t testing.TB, page []byte) (text string) {
	t.Helper()
	if !bytes.HasPrefix(page, []byte("<!DOCTYPE html>")) {
		t.Errorf("begins with %.40q", page)
	}
	for _, bad := range []string{"@import", "ZgotmplZ", "\x1b", "<no value>"} {
		if bytes.Contains(page, []byte(bad)) {
			t.Errorf("has %q", bad)
		}
	}
	for _, part := range []string{"Content-Security-Policy", "prefers-color-scheme: dark", `name="viewport"`} {
		if !bytes.Contains(page, []byte(part)) {
			t.Errorf("no %s", part)
		}
	}
	var open []string
	ids := map[string]bool{}
	var links []string
	var pieces strings.Builder
	for z := html.NewTokenizer(bytes.NewReader(page)); ; {
		kind := z.Next()
		if kind == html.ErrorToken {
			break
		}
		token := z.Token()
		switch kind {
		case html.TextToken:
			if piece := strings.TrimSpace(token.Data); piece != "" && !slices.Contains(open, "style") {
				pieces.WriteString(piece + "\n")
			}
			continue
		case html.StartTagToken:
			if !slices.Contains(voids, token.Data) {
				open = append(open, token.Data)
			}
		case html.EndTagToken:
			if len(open) == 0 || open[len(open)-1] != token.Data {
				t.Fatalf("</%s> where %v is open", token.Data, open)
			}
			open = open[:len(open)-1]
		}
		if token.Data == "script" {
			t.Error("a script")
		}
		for _, a := range token.Attr {
			switch {
			case a.Key == "id" && ids[a.Val]:
				t.Errorf("twice the id %s", a.Val)
			case a.Key == "id":
				ids[a.Val] = true
			case slices.Contains(loads, a.Key) && strings.HasPrefix(a.Val, "#"):
				links = append(links, a.Val[1:])
			case slices.Contains(loads, a.Key), strings.HasPrefix(a.Key, "on"):
				t.Errorf("<%s> has %s=%q", token.Data, a.Key, a.Val)
			case strings.Contains(a.Val, "url(") && !strings.HasPrefix(a.Val, "url(#"):
				t.Errorf("<%s> loads %s", token.Data, a.Val)
			}
		}
	}
	for _, link := range links {
		if !ids[link] {
			t.Errorf("a link to #%s, which is not there", link)
		}
	}
	if len(open) != 0 {
		t.Errorf("left open: %v", open)
	}
	return pieces.String()
}
