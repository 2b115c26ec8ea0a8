package ports

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// The numbers that are given away: below the ephemeral ones of Linux, which begin at
// 32768 (ip_sysctl, ip_local_port_range), and outside of Kubernetes' node ports, which
// begin at 30000.
const (
	First = 26000
	Last  = 29999
)

// Key identifies a worker's port of one checkout.
type Key struct {
	Dir     string `json:"dir"` // of the project, symlinks resolved
	Project string `json:"project"`
	Worker  string `json:"worker"`
	Target  uint16 `json:"target"`
}

// first is where the search begins: a number that depends on the key alone, so that
// most checkouts have the same one again, even without their lease.
func (k Key) first() uint16 {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %d", k.Dir, k.Project, k.Worker, k.Target))
	return First + uint16(binary.BigEndian.Uint32(sum[:])%(Last-First+1))
}

// choose returns the first number from that of the key on that is neither taken, by a
// lease of any kind, nor refused by free.
func choose(k Key, taken map[uint16]bool, free func(uint16) bool) (uint16, error) {
	for i, n := 0, k.first(); i <= Last-First; i++ {
		if !taken[n] && free(n) {
			return n, nil
		}
		if n++; n > Last {
			n = First
		}
	}
	return 0, fmt.Errorf("no port from %d to %d is free", First, Last)
}
