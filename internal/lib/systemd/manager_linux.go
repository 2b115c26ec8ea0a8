package systemd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/godbus/dbus/v5"
	"golang.org/x/sys/unix"
)

// ErrNone means that the user has no systemd that runs.
var ErrNone = errors.New("your systemd (user@.service) doesn't run")

// Manager is a connection to the systemd of the calling user. Close it.
type Manager struct {
	conn   *dbus.Conn
	object dbus.BusObject
}

const (
	destination = "org.freedesktop.systemd1"
	managerPath = "/org/freedesktop/systemd1"
	managerName = "org.freedesktop.systemd1.Manager"
)

// RuntimeDir is the directory with the sockets of the user's systemd:
// XDG_RUNTIME_DIR, or where pam_systemd(8) makes it, for a shell without a session.
func RuntimeDir(lookup func(string) (string, bool)) string {
	if dir, ok := lookup("XDG_RUNTIME_DIR"); ok && filepath.IsAbs(dir) {
		return dir
	}
	return "/run/user/" + strconv.Itoa(os.Getuid())
}

// Dial connects to the user's systemd by the user's bus, else by its own socket, which
// needs no D-Bus daemon, and checks that it responds. The error is [ErrNone] if there is
// neither. ctx bounds the connection's lifetime, too.
func Dial(ctx context.Context, runtimeDir string) (*Manager, error) {
	var failed error
	for _, socket := range []struct {
		path string
		bus  bool
	}{{"bus", true}, {"systemd/private", false}} {
		conn, err := dial(ctx, filepath.Join(runtimeDir, socket.path), socket.bus)
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ECONNREFUSED) {
			continue
		}
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		m := &Manager{conn, conn.Object(destination, managerPath)}
		if err := m.wake(ctx); err != nil {
			conn.Close()
			failed = errors.Join(failed, err)
			continue
		}
		return m, nil
	}
	if failed != nil {
		return nil, fmt.Errorf("your systemd: %w", failed)
	}
	return nil, ErrNone
}

func dial(ctx context.Context, path string, bus bool) (*dbus.Conn, error) {
	raw, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := checkPeer(raw.(*net.UnixConn)); err != nil {
		raw.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	conn, err := dbus.NewConn(raw, dbus.WithContext(ctx)) // which closes it
	if err != nil {
		raw.Close()
		return nil, err
	}
	if err = conn.Auth([]dbus.Auth{dbus.AuthExternal(strconv.Itoa(os.Getuid()))}); err == nil && bus {
		err = conn.Hello()
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return conn, nil
}

// wakeTime is how long the first response may take until the request is repeated.
const wakeTime = 100 * time.Millisecond

// wake returns when systemd responds. On its own socket a request that it reads
// together with the end of the authentication waits there until the next one comes.
func (m *Manager) wake(ctx context.Context) error {
	for {
		once, cancel := context.WithTimeout(ctx, wakeTime)
		_, err := m.Version(once)
		late := once.Err() != nil && ctx.Err() == nil
		cancel()
		if err == nil || !late {
			return err
		}
	}
}

// checkPeer refuses a socket of another user, who would learn what runs.
func checkPeer(c *net.UnixConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var cred *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) { cred, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return err
	}
	if failed != nil {
		return failed
	}
	if cred.Uid != uint32(os.Getuid()) {
		return fmt.Errorf("served by uid %d, want %d", cred.Uid, os.Getuid())
	}
	return nil
}

// Version is systemd's, for display.
func (m *Manager) Version(ctx context.Context) (string, error) {
	var v dbus.Variant
	call := m.object.CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", 0, managerName, "Version")
	if err := call.Store(&v); err != nil {
		return "", err
	}
	version, ok := v.Value().(string)
	if !ok {
		return "", errors.New("its version is not a string")
	}
	return version, nil
}

// Close ends the connection; units stay.
func (m *Manager) Close() error { return m.conn.Close() }
