package app

import (
	"strings"
	"testing"

	"github.com/llmdo/workshop/compose"
)

// Where nothing can start the process that leases credentials, nothing is started.
func TestMayStartBroker(t *testing.T) {
	ready := func(dir string) *Project {
		return &Project{Compiled: &compose.Compiled{Facts: &compose.Facts{RuntimeDir: dir}}}
	}
	env := &Env{Self: []string{"/usr/bin/workshop"}}
	long := "/" + strings.Repeat("d", maxSocketPath)
	for _, c := range []struct {
		env  *Env
		dir  string
		want string
	}{
		{env, t.TempDir(), ""},
		{env, long, "is too long by 8 bytes"},
		{&Env{}, t.TempDir(), "which a process of the program workshop leases"},
	} {
		err := c.env.mayStartBroker(t.Context(), ready(c.dir))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.dir, err, c.want)
		}
	}
}
