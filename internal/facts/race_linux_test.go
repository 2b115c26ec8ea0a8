package facts

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/dev/testutil"
)

// B60: a worker exchanges a watched file, and a directory, for a FIFO while they
// are looked at: nobody waits for its other end.
func TestSnapshotRace(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{
		os.WriteFile(at(".envrc"), []byte("x"), 0o644), syscall.Mkfifo(at("fifo"), 0o644),
		os.Mkdir(at("sub"), 0o755), syscall.Mkfifo(at("fifo2"), 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	var service types.ServiceConfig
	service.Volumes = []types.ServiceVolumeConfig{{Type: types.VolumeTypeBind, Source: dir, Target: "/w"}}
	c := &compose.Compiled{
		Roles: map[string]compose.Role{"w": compose.RoleWorker}, Facts: &compose.Facts{ProjectDir: dir},
		Project: &types.Project{Services: types.Services{"w": service}},
	}
	testutil.WhileExchanged(t, func() error {
		_, err := TakeSnapshot(context.Background(), c, dir)
		if err != nil && strings.Contains(err.Error(), "replaced") {
			return nil
		}
		return err
	}, [2]string{at(".envrc"), at("fifo")}, [2]string{at("sub"), at("fifo2")})
}

// Of places that are everybody's, what another user has put there isn't read: a
// FIFO would be waited for.
func TestRuntimeDirsOfOthers(t *testing.T) {
	dir := t.TempDir()
	id := filepath.Join(dir, ".cache/workshop/run", RuntimeID("p", dir))
	if err := os.MkdirAll(id, 0o700); err != nil {
		t.Fatal(err)
	}
	me := os.Getuid()
	if got := RuntimeDirs("p", dir, me, nil, dir); len(got) != 1 {
		t.Errorf("one's own: %q", got)
	}
	if err := os.Rename(id, id+"x"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(id+"x", id); err != nil {
		t.Fatal(err)
	}
	if got := RuntimeDirs("p", dir, me, nil, dir); len(got) != 0 {
		t.Errorf("a link: %q", got)
	}
	if me != 0 {
		return
	}
	if err := os.Remove(id); err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{id, filepath.Dir(id)} {
		_ = os.Rename(id+"x", id)
		if err := os.Chown(other, 65532, 65532); err != nil {
			t.Fatal(err)
		}
		if got := RuntimeDirs("p", dir, me, nil, dir); len(got) != 0 {
			t.Errorf("%s is another user's: %q", other, got)
		}
		if err := os.Chown(other, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
}
