//go:build !linux

package facts

import "io/fs"

// mountPoints returns nothing: on other systems engines are in a VM, which sees at
// most shared files.
func mountPoints() ([]string, error) { return nil, nil }

func hasACL(string) bool { return false }

func inMemory(string) bool { return false }

func stateOf(info fs.FileInfo) string { return info.ModTime().String() }
