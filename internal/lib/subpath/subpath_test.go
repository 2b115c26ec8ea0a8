package subpath

import "testing"

func TestBelow(t *testing.T) {
	for _, tt := range []struct {
		name, p, dir, rest string
		ok                 bool
	}{
		{"itself", "/a/b", "/a/b", "", true},
		{"below", "/a/b/c/d", "/a/b", "c/d", true},
		{"above", "/a", "/a/b", "", false},
		{"the same beginning of a name", "/a/bc", "/a/b", "", false},
		{"the root", "/a", "/", "a", true},
		{"the root itself", "/", "/", "", true},
		{"not clean", "/a//b/../c/", "/a/", "c", true},
		{"out by ..", "/a/../b", "/a", "", false},
		{"relative", "a/b", "a", "b", true},
		{"relative, below .", "a/b", ".", "a/b", true},
		{"relative, above .", "../a", ".", "../a", false},
		{"relative, not above .", "..a", ".", "..a", true},
		{"relative, below the root", "a", "/", "", false},
		{"absolute, below .", "/a", ".", "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rest, ok := Below(tt.p, tt.dir)
			if ok != tt.ok || ok && rest != tt.rest {
				t.Errorf("Below(%q, %q) = %q, %v, want %q, %v", tt.p, tt.dir, rest, ok, tt.rest, tt.ok)
			}
			if got := Within(tt.p, tt.dir); got != tt.ok {
				t.Errorf("Within(%q, %q) = %v, want %v", tt.p, tt.dir, got, tt.ok)
			}
		})
	}
}
