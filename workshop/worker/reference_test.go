package worker

import (
	"strings"
	"testing"
)

// Each key of the reference is known, and each format lists its tools where the
// reference says.
func TestReference(t *testing.T) {
	for _, k := range markdownKeys {
		if k.name == "output_schema_ref" {
			continue // another name of result_type, which is the same file below
		}
		_, l := Parse("workers/name.md", []byte("---\nallowed-tools: Read\n---\nWork.\n"), Markdown)
		_, with := Parse("workers/name.md", []byte("---\n"+k.example+"\n"+map[bool]string{false: "allowed-tools: Read\n"}[k.name == "allowed-tools"]+"---\nWork.\n"), Markdown)
		if k.doc == "" || !strings.HasPrefix(k.example, k.name+": ") || len(l) != 0 || len(with) != 0 {
			t.Errorf("%s: %q: %v", k.name, k.example, with)
		}
	}
	for dialect, keys := range toolKeys {
		for key := range strings.SplitSeq(keys, ", ") {
			def, l := Parse("name", []byte("---\nname: name\ndescription: x\n"+strings.Trim(key, "`")+": [read_file]\n---\nWork.\n"), dialect)
			if l.HasErrors() || len(def.Tools) != 1 {
				t.Errorf("%s: %s lists no tools: %v", dialect, key, l)
			}
		}
	}
}
