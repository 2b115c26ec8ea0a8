//go:build linux && race

package contain

func init() { groupMemory = 512 << 20 } // the detector's
