//go:build !linux

package made

import "errors"

// ReadKernel returns nothing: containers are elsewhere.
func ReadKernel() Kernel { return Kernel{} }

// BootID returns nothing, too.
func BootID() string { return "" }

// ReadArgs returns nothing, too.
func ReadArgs(int) []string { return nil }

// FileID returns nothing, too.
func FileID(string) string { return "" }

// ReadLimits returns an error: control groups are Linux's.
func ReadLimits(int) (*Limits, error) { return nil, errors.New("control groups are Linux's") }
