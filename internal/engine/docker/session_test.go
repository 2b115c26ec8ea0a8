package docker

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/workshop"
)

// A session is a connection of its own to the toolbox, by the engine where
// there is no door.
func TestSession(t *testing.T) {
	f := newFixture(t, func(w *workshop.Workshop) {
		w.Workers[1].Container.Env["FAKE_OLD"] = value("1")
	}, "one", "old")
	f.up(t)
	f.withoutDoors(t)

	t.Run("talk", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		conns := []io.ReadWriteCloser{}
		for range 2 {
			conn, err := f.e.Session(ctx, f.name, "one", f.dir)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			conns = append(conns, conn)
		}
		cancel() // bounds the connecting alone
		for i, text := range []string{"first", "second"} {
			want := "\x00session " + text
			if _, err := io.WriteString(conns[i], text); err != nil {
				t.Fatal(err)
			}
			b := make([]byte, len(want))
			if _, err := io.ReadFull(conns[i], b); err != nil || string(b) != want {
				t.Errorf("session %d: %q, %v", i, b, err)
			}
		}
		// Whoever reads is woken by the end.
		read := make(chan error, 1)
		go func() { _, err := conns[0].Read(make([]byte, 1)); read <- err }()
		if err := conns[0].Close(); err != nil {
			t.Error(err)
		}
		if err := <-read; err == nil {
			t.Error("a session that was closed gave something to read")
		}
	})
	t.Run("a program without tools", func(t *testing.T) {
		conn, err := f.e.Session(t.Context(), f.name, "old", "")
		if err == nil {
			defer conn.Close()
			_, err = conn.Read(make([]byte, 1))
		}
		if _, ok := errors.AsType[*engine.NoToolboxError](err); !ok || !strings.Contains(err.Error(), "workshop up") {
			t.Errorf("err = %v", err)
		}
	})
	t.Run("not there", func(t *testing.T) {
		if _, err := f.e.Session(t.Context(), f.name, "nobody", ""); !isNotRunning(err) {
			t.Errorf("err = %v", err)
		}
	})
	t.Run("another directory's", func(t *testing.T) {
		_, err := f.e.Session(t.Context(), f.name, "one", "/elsewhere")
		if _, ok := errors.AsType[*engine.ForeignError](err); !ok {
			t.Errorf("err = %v", err)
		}
	})
	t.Run("in workers only", func(t *testing.T) {
		for _, service := range []string{"room", "guard"} {
			if _, err := f.e.Session(t.Context(), f.name, service, ""); err == nil {
				t.Errorf("a session with the %s", service)
			}
		}
	})
	t.Run("not under its own name", func(t *testing.T) { // as Compose 1.29 calls it
		c := f.container(t, "one")
		if err := f.e.cli.ContainerRename(t.Context(), c.ID, c.Name+"x"); err != nil {
			t.Fatal(err)
		}
		defer f.e.cli.ContainerRename(t.Context(), c.ID, c.Name)
		conn, err := f.e.Session(t.Context(), f.name, "one", "")
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
	})
	t.Run("stopped", func(t *testing.T) {
		id := f.container(t, "one").ID
		if err := f.e.cli.ContainerStop(t.Context(), id, container.StopOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := f.e.Session(t.Context(), f.name, "one", ""); !isNotRunning(err) {
			t.Errorf("err = %v", err)
		}
	})
}

func isNotRunning(err error) bool {
	_, ok := errors.AsType[*engine.NotRunningError](err)
	return ok
}

// A worker of the same name that is another project's isn't taken for ours.
func TestLookReadsLabels(t *testing.T) {
	f := newFixture(t, nil, "one")
	f.up(t)
	c := f.container(t, "one")
	i, err := f.e.inspectFast(t.Context(), c.Name)
	if err != nil || i.ID != c.ID || i.State.Pid == 0 {
		t.Fatalf("%+v, %v", i, err)
	}
	if w := i.worker(f.name, "one"); w.dialIn == "" || w.container.State != "running" || w.container.Directory != f.dir {
		t.Errorf("%+v", w)
	}
	// The name says one project, the labels another.
	project, service := f.name[:strings.LastIndexByte(f.name, '-')], f.name[strings.LastIndexByte(f.name, '-')+1:]+"-one"
	if _, err := f.e.look(t.Context(), project, service); !isNotRunning(err) {
		t.Errorf("err = %v", err)
	}
}

// Where there is a door and nobody comes, the engine isn't asked instead: what it
// starts in a worker, the worker can stop.
func TestSessionByTheDoorAlone(t *testing.T) {
	f := newFixture(t, nil, "one")
	f.up(t)
	if _, err := f.e.Session(t.Context(), f.name, "one", f.dir); err == nil || !strings.Contains(err.Error(), "workshop restart one") {
		t.Errorf("a session: %v", err)
	}
	for user, want := range map[string]string{"": "connect to worker one", "01000": "connect to worker one", "1000:1000": "connect to worker one", "1000:5": "B60"} {
		var out bytes.Buffer
		if code, err := f.e.Exec(t.Context(), f.name, "one", engine.ExecOptions{Command: []string{"/workshop-init", "say"}, User: user, Stdout: &out}); code != exitOurs || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a command of %q: %d, %v, %q", user, code, err, &out)
		}
	}
}
