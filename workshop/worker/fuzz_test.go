package worker

import (
	"bytes"
	"testing"
)

// FuzzParse: no input panics, every problem has a file, a code and a place
// inside of it, and what has no error has a name (B60).
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"", "---\n", "---\n---\n", "---\nname: a\nallowed-tools: Read, Bash(git:*)\n---\nDo.\n",
		"\ufeff---\r\nname: a\r\n---\r\n", "---\na: &a [*a]\ntools: *a\nresult_type: *a\n---\n",
		"name: a\ntoolsets: {shell: {rules: [{pattern: x}], default: {}}, delegation: {b: {}}}\n",
		"---\nmetadata: {delegates-to: a, result_type: x.json}\n---\n", "---\n? [a]\n: b\n---\n",
		"---\nresult_type: {$ref: '#'}\n---\n", "---\nname: a\n...\nb: c\n---\n", "---\nx: &x {<<: *x}\n---\n",
	} {
		for d := range 5 {
			f.Add(byte(d), []byte(s))
		}
	}
	dialects := []struct {
		path string
		d    Dialect
	}{{"workers/a.md", Markdown}, {"workers/a.worker", LLMDoWorker}, {"a.agent", LLMDoAgent}, {".claude/agents/a.md", ClaudeAgent}, {"skills/a/SKILL.md", AgentSkill}}
	f.Fuzz(func(t *testing.T, which byte, data []byte) {
		d := dialects[int(which)%len(dialects)]
		before := bytes.Clone(data)
		def, diags := Parse(d.path, data, d.d)
		if !bytes.Equal(before, data) {
			t.Fatal("the input was changed")
		}
		for _, x := range diags {
			if x.Range.Filename != d.path || x.Code == "" || x.Summary == "" || x.Range.End.Byte > len(data) || x.Range.Start.Byte > x.Range.End.Byte {
				t.Fatalf("diagnostic %+v", x)
			}
		}
		if !diags.HasErrors() && (def.Name == "" || def.Dialect != d.d) {
			t.Fatalf("no error and no definition: %+v", def)
		}
	})
}

// FuzzToolList: what is read is what is written, and a list that is refused
// gives nothing.
func FuzzToolList(f *testing.F) {
	for _, s := range []string{"", "Read, Grep", "Read Grep", "Bash(git log:*) Read", "Bash(a(b)c)", "Bash (x)", ")", "(", "a(b", "a(b)c", "é(ü),", ",,,"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		entries, bad := splitTools(s)
		if bad != nil {
			if len(entries) > 0 || bad.from < 0 || bad.to > len(s) || bad.from >= bad.to {
				t.Fatalf("%q: %v %+v", s, entries, bad)
			}
			return
		}
		last := 0
		for _, e := range entries {
			if e.name == "" || e.from < last || e.to <= e.from || e.to > len(s) {
				t.Fatalf("%q: %+v", s, e)
			}
			again, bad := splitTools(s[e.from:e.to])
			if bad != nil || len(again) != 1 || again[0].name != e.name || again[0].limit != e.limit || again[0].limited != e.limited {
				t.Fatalf("%q: %+v, alone %+v", s, e, again)
			}
			last = e.to
		}
	})
}
