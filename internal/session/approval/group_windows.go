package approval

import (
	"os"
	"os/exec"
)

func ownGroup(*exec.Cmd) {}

func ownSocket(path string) error {
	_, err := os.Stat(path)
	return err
}
