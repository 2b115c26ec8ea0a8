package systemd

import (
	"os"
	"os/user"
	"strconv"
)

// Lingers reports whether the caller's systemd goes on after the last logout
// (loginctl(1) enable-linger).
func Lingers() bool {
	u, err := user.LookupId(strconv.Itoa(os.Getuid()))
	if err != nil {
		return false
	}
	_, err = os.Lstat("/var/lib/systemd/linger/" + u.Username)
	return err == nil
}
