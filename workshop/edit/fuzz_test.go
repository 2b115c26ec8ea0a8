package edit_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/llmdo/workshop/workshop"
	"github.com/llmdo/workshop/workshop/edit"
)

// Any file and any line: no panic; what succeeds has the file's own bytes in
// their order and only whole text between them, is the same when it is done
// again, and a workshop that loaded loads, with one line more.
func FuzzAdd(f *testing.F) {
	paths, _ := filepath.Glob("../testdata/valid/*.yaml")
	more, _ := filepath.Glob("../../examples/*/workshop.yaml")
	for _, p := range append(paths, more...) {
		data, err := os.ReadFile(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, "", "new.example.com", "", false)
	}
	for _, c := range readCases(f) {
		f.Add(c.in, c.lines[0].Worker, c.lines[0].Text, c.lines[0].Comment, c.lines[0].Deny)
		f.Add(c.in, "", "new.example.com", "# [", true)
	}
	f.Fuzz(func(t *testing.T, src []byte, worker, text, comment string, deny bool) {
		l := edit.Line{Worker: worker, Deny: deny, Text: text, Comment: comment}
		out, err := edit.Add(src, l)
		if err != nil {
			if out != nil {
				t.Fatalf("%v, and %q", err, out)
			}
			return
		}
		if bytes.Equal(out, src) {
			return // it was there
		}
		if !insertedOnly(src, out) {
			t.Fatalf("bytes of the file are gone:\n%s\n\n%s", src, out)
		}
		if again, err := edit.Add(out, l); err != nil || !bytes.Equal(again, out) {
			t.Fatalf("a second time: %v\n%s\n\n%s", err, out, again)
		}
		l.Text = "new.example.com" // any line does for the edit, not for the loader
		if out, err = edit.Add(src, l); err != nil || worker != "" {
			return // what a worker may have is for the loader to say
		}
		before, after := loaded(src), loaded(out)
		if before == nil {
			return
		}
		if after == nil {
			t.Fatalf("doesn't load any more:\n%s\n\n%s", src, out)
		}
		b, a := before.Container.Network, after.Container.Network
		added := len(a.Allow) - len(b.Allow)
		if deny {
			added = len(a.Deny) - len(b.Deny)
		}
		if len(a.Allow)+len(a.Deny)-len(b.Allow)-len(b.Deny) != added || added > 1 || added == 0 && !bytes.Equal(src, out) {
			t.Fatalf("%d lines more:\n%s\n\n%s", added, src, out)
		}
	})
}

// insertedOnly reports whether out is src with bytes put in.
func insertedOnly(src, out []byte) bool {
	for _, c := range out {
		if len(src) > 0 && c == src[0] {
			src = src[1:]
		}
	}
	return len(src) == 0
}

func loaded(data []byte) *workshop.Workshop {
	fsys := fstest.MapFS{"workshop.yaml": {Data: data}}
	for _, name := range []string{"worker", "code-reviewer", "security-scanner", "plain", "scanner", "flow"} {
		fsys["workers/"+name+".md"] = &fstest.MapFile{Data: []byte("---\nallowed-tools: Read\n---\nx\n")}
	}
	w, _ := workshop.Load(context.Background(), fsys, "workshop.yaml", workshop.Options{Home: "/home/me", Lookup: func(name string) (string, bool) { return "set", strings.HasPrefix(name, "S") }})
	return w
}
