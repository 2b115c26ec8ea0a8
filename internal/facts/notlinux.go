//go:build !linux

package facts

import "io/fs"

// mountPoints is not asked elsewhere: engines there are in a VM and do not
// see the machine's own files, or only those that the VM shares.
func mountPoints() ([]string, error) { return nil, nil }

func hasACL(string) bool { return false }

func inMemory(string) bool { return false }

func stateOf(info fs.FileInfo) string { return info.ModTime().String() }
