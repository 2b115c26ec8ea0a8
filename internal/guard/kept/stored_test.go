package kept

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/guard/clock"
	"github.com/llmdo/workshop/internal/made"
	"github.com/llmdo/workshop/internal/room/handover"
)

// stored writes a state as a room does.
func stored(t *testing.T, s State) (dir string) {
	t.Helper()
	m := newMemory()
	w := slots{store: m}
	if err := w.write(s); err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, handover.StoredFile), m.b, 0o444); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestLoad: denies end by the clock of the boot, and after another boot by the wall
// clock.
func TestLoad(t *testing.T) {
	now := clock.Boot()
	for _, tt := range []struct {
		name  string
		boot  string
		ends  time.Duration // when it was stored
		until time.Duration // from now
		want  time.Duration // from now; 0: never
	}{
		{"this boot", made.BootID(), now + time.Hour, time.Minute, time.Hour},
		{"without an end", "other", 0, 0, 0},
		{"another boot", "other", now + 1000*time.Hour, time.Minute, time.Minute},
		{"over since", "other", now + time.Hour, -now - time.Hour, 1 - now},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := deny(t, "one.example", tt.ends)
			if tt.ends != 0 {
				d.Until = time.Now().Add(tt.until)
			}
			got, err := Load(stored(t, State{Boot: tt.boot, Denies: []Deny{d}}))
			if err != nil || len(got) != 1 {
				t.Fatalf("got %+v, %v", got, err)
			}
			want := tt.want
			if want != 0 {
				want += now
			}
			if diff := got[0].Ends - want; diff.Abs() > time.Second || (want == 0) != (got[0].Ends == 0) {
				t.Errorf("it ends at %v, want %v", got[0].Ends, want)
			}
		})
	}
}

func TestLoadWithout(t *testing.T) {
	dir := t.TempDir()
	if got, err := Load(dir); got != nil || err != nil {
		t.Errorf("no file: got %v, %v", got, err)
	}
	if err := os.WriteFile(filepath.Join(dir, handover.StoredFile), []byte("short"), 0o444); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(dir); err == nil {
		t.Error("half a file was read")
	}
}
