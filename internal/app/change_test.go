package app

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func lockApp(home string) (*Env, *bytes.Buffer) {
	var said bytes.Buffer
	return testEnv(&Env{Home: home, Lookup: func(string) (string, bool) { return "", false }}, &said), &said
}

// TestLock: one holder at a time, although each removes the file when it is
// done, and nothing is left.
func TestLock(t *testing.T) {
	home := t.TempDir()
	holders, most, n := 0, 0, 0
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			a, _ := lockApp(home)
			for range 5 {
				ch, err := a.Change(t.Context(), "p")
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				holders++
				most, n = max(most, holders), n+1
				mu.Unlock()
				time.Sleep(time.Millisecond)
				mu.Lock()
				holders--
				mu.Unlock()
				ch.Unlock()
			}
		})
	}
	all.Wait()
	if most != 1 || n != 40 {
		t.Errorf("%d had the lock, %d of them at once", n, most)
	}
	if left, _ := filepath.Glob(filepath.Join(home, ".local/state/workshop/*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestLockWaits(t *testing.T) {
	home := t.TempDir()
	first, _ := lockApp(home)
	ch, err := first.Change(t.Context(), "p")
	if err != nil {
		t.Fatal(err)
	}
	other, _ := lockApp(home)
	free, err := other.Change(t.Context(), "q")
	if err != nil {
		t.Fatal(err)
	}
	free.Unlock()
	a, said := lockApp(home)
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { cancel(ErrInterrupted) })
	if _, err := a.Change(ctx, "p"); !errors.Is(err, ErrInterrupted) {
		t.Errorf("the lock was had twice: %v", err)
	}
	if !strings.Contains(said.String(), "another workshop command works on project p (pid ") {
		t.Errorf("said %q", said)
	}
	ch.Unlock()
	if ch, err = a.Change(t.Context(), "p"); err != nil {
		t.Fatal(err)
	}
	ch.Unlock()
}

// TestLockWithoutPlace: a directory that can't be written keeps nobody from
// `down`.
func TestLockWithoutPlace(t *testing.T) {
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, ".local"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, h := range []string{home, ""} {
		a, said := lockApp(h)
		ch, err := a.Change(t.Context(), "p")
		if err != nil || !strings.Contains(said.String(), "keeps two commands") {
			t.Fatalf("%v, %q", err, said)
		}
		ch.Unlock()
	}
}
