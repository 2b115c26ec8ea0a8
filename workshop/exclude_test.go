package workshop

import (
	"slices"
	"testing"
	"testing/fstest"
)

// B9: `keys/` leaves the directory out, as in .gitignore; with the slash it
// would match nothing.
func TestExcludedDirectoryMayEndWithASlash(t *testing.T) {
	w, list := Load(t.Context(), fstest.MapFS{
		"workshop.yaml": {Data: []byte("workshop:\n  name: a\n  container:\n    image: x\n    mounts: [{source: ./src, target: /src, exclude: [keys/, \"**/private/\"]}]\n  workers: [w]\n")},
		"workers/w.md":  {Data: []byte("---\nname: w\ndescription: x\ntools: Bash\n---\nx\n")},
		"src/a":         {},
	}, "workshop.yaml", Options{})
	if list.HasErrors() {
		t.Fatal(list)
	}
	if got := w.Workers[0].Container.Mounts[0].Exclude; !slices.Equal(got, []string{"keys", "**/private"}) {
		t.Errorf("exclude = %q", got)
	}
}
