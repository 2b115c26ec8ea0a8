//go:build unix

package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Who can write to what decides what runs is named, with the command that changes it.
func TestPrivate(t *testing.T) {
	dir := t.TempDir()
	mode := func(name string, m os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, m); err != nil {
			t.Fatal(err)
		}
		return path
	}
	uid := os.Getuid()
	for _, tt := range []struct {
		name, path string
		uid        int
		says, do   string // empty: fine
	}{
		{"mine", mode("a", 0o600), uid, "", ""},
		{"readable", mode("b", 0o644), uid, "", ""},
		{"not there", filepath.Join(dir, "gone"), uid, "", ""},
		{"none", "", uid, "", ""},
		{"group", mode("c", 0o660), uid, "mode 0660", "chmod go-w "},
		{"world", mode("d d", 0o602), uid, "mode 0602", "chmod go-w '" + dir + "/d d'"},
		{"root's", mode("e", 0o600), 12345, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.name == "root's" && uid != 0 {
				tt.says, tt.do = "belongs to uid", "chown 12345"
			}
			got := Private(Settings, tt.uid, tt.path)
			if tt.says == "" {
				if len(got) != 0 {
					t.Errorf("got %+v", got)
				}
				return
			}
			if len(got) != 1 || got[0].Level != Error || got[0].Group != Settings || !strings.Contains(got[0].Text, tt.says) || !strings.Contains(got[0].Do, tt.do) {
				t.Errorf("got %+v", got)
			}
		})
	}
}
