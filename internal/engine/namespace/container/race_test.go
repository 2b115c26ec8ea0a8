//go:build linux && race

package container

func init() { groupMemory = 512 << 20 } // the detector's
