package worker

import "testing"

func TestSplitWorker(t *testing.T) {
	for _, c := range []struct {
		in, worker, file string
		ok               bool
	}{
		{"reviewer:/output", "reviewer", "/output", true},
		{"./a:b", "", "./a:b", false},
		{"/a:b", "", "/a:b", false},
		{"plain", "", "plain", false},
		{"-", "", "-", false},
		{"w:", "w", "", true},
	} {
		if worker, file, ok := splitWorker(c.in); worker != c.worker || file != c.file || ok != c.ok {
			t.Errorf("splitWorker(%q) = %q, %q, %v", c.in, worker, file, ok)
		}
	}
}
