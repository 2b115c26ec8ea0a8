package workshop

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

// B8: a worker file that symbolic links lead to is in the mount that has it.
func TestPolicyFilesByLinks(t *testing.T) {
	link := func(to string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(to), Mode: fs.ModeSymlink} }
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	const worker = "---\nallowed-tools: Read\n---\nx\n"
	for _, tt := range []struct {
		name, mount string
		files       fstest.MapFS
		want        string // of the hint
	}{
		{"a directory", "./out:/out:rw", fstest.MapFS{"workers": link("out/w"), "out/w/one.md": file(worker)}, "./workers:/out/w:ro"},
		{"the mount itself", "./out/w:/w:rw", fstest.MapFS{"workers": link("out/w"), "out/w/one.md": file(worker)}, "./workers:/w:ro"},
		{"by its link", "./workers:/w:rw", fstest.MapFS{"workers": link("out/w"), "out/w/one.md": file(worker)}, "./workers:/w:ro"},
		{"one file", "./out:/out:rw", fstest.MapFS{"workers/one.md": link("../out/one.md"), "out/one.md": file(worker)}, "./workers/one.md:/out/one.md:ro"},
		{"control: elsewhere", "./src:/src:rw", fstest.MapFS{"workers": link("out/w"), "out/w/one.md": file(worker)}, ""},
		{"control: read-only", "./out:/out", fstest.MapFS{"workers": link("out/w"), "out/w/one.md": file(worker)}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.files["workshop.yaml"] = file("workshop:\n  name: test\n  container:\n    image: i:1\n    mounts: ['" + tt.mount + "']\n  workers: [one]\n")
			_, l := Load(t.Context(), tt.files, "workshop.yaml", Options{Root: "/srv/p"})
			if l.HasErrors() {
				t.Fatal(l)
			}
			got := ""
			for _, d := range l {
				if d.Code == "writable-policy" {
					got = d.Hint
				}
			}
			if (got == "") != (tt.want == "") || !strings.HasSuffix(got, tt.want) {
				t.Errorf("hint %q, want %q (%v)", got, tt.want, l)
			}
		})
	}
}
