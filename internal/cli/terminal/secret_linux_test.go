package terminal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestReadSecret: what is typed isn't shown, and an interrupt leaves a terminal that shows
// again what is typed.
func TestReadSecret(t *testing.T) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer master.Close()
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	in, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	echo := func() bool {
		s, err := unix.IoctlGetTermios(int(in.Fd()), unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		return s.Lflag&unix.ECHO != 0
	}
	hidden := func() {
		t.Helper()
		for end := time.Now().Add(5 * time.Second); echo(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("the terminal shows what is typed")
			}
		}
	}

	typed := make(chan error, 1)
	go func() {
		hidden()
		_, err := master.WriteString("canary\n")
		typed <- err
	}()
	got, err := ReadSecret(t.Context(), in)
	if string(got) != "canary" || err != nil || !echo() {
		t.Errorf("got %q, %v; shown again: %v", got, err, echo())
	}
	if err := <-typed; err != nil {
		t.Fatal(err)
	}
	if _, err := in.WriteString("end"); err != nil {
		t.Fatal(err)
	}
	var shown strings.Builder
	for b := make([]byte, 100); !strings.Contains(shown.String(), "end"); {
		n, err := master.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		shown.Write(b[:n])
	}
	if strings.Contains(shown.String(), "canary") {
		t.Errorf("the terminal shows %q", shown.String())
	}

	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("interrupted")
	go func() { hidden(); cancel(why) }()
	if got, err := ReadSecret(ctx, in); got != nil || !errors.Is(err, why) || !echo() {
		t.Errorf("got %q, %v; shown again: %v", got, err, echo())
	}
}
