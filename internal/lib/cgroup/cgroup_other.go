//go:build !linux

package cgroup

// Parent is where groups are made. There is none outside Linux.
type Parent struct{}

// Find returns *Unavailable: control groups are Linux's.
func Find() (*Parent, error) {
	l := Limits{Why: map[string]string{}}
	for _, name := range []string{Memory, Swap, CPU, PIDs} {
		l.Why[name] = "control groups are Linux's"
	}
	return nil, &Unavailable{Missing: l.missing(), Do: "Use the docker engine"}
}

// Can returns the limits that can be enforced: none.
func (*Parent) Can() Limits { return Limits{} }

// Require returns *Unavailable.
func (*Parent) Require() error {
	_, err := Find()
	return err
}

// MemoryUsage returns false: control groups are Linux's.
func MemoryUsage(string) (int64, bool) { return 0, false }

// Enforced are the limits on a process.
type Enforced struct {
	Memory, Swap       int64
	CPUs               float64
	PIDs               int64
	Peak, Killed, Full int64
	Member             bool
}

// EnforcedOn returns *Unavailable.
func EnforcedOn(int) (Enforced, error) {
	_, err := Find()
	return Enforced{}, err
}

// Members returns *Unavailable.
func Members(int) ([]int, error) {
	_, err := Find()
	return nil, err
}

// LimitsOn returns *Unavailable.
func LimitsOn(int, string) (Enforced, error) { return EnforcedOn(0) }
