package compose

import (
	"time"

	"github.com/compose-spec/compose-go/v2/types"
)

// How long a container may take to end after SIGTERM, before it is killed.
// Our inits end at once; a worker's processes get a moment.
const (
	workerGrace = 2 * time.Second
	roomGrace   = time.Second
	guardGrace  = 2 * time.Second
)

// hardened returns a service with what every role has in common: B1, B2, B3,
// B6, and our init as main process (B12).
func hardened(name string, grace time.Duration) types.ServiceConfig {
	s := types.ServiceConfig{Name: name}
	s.CapDrop = []string{"ALL"}
	s.SecurityOpt = []string{noNewPrivileges, seccompOption}
	s.ReadOnly = true
	s.Ipc = "private"
	s.Init = ptr(false) // ours reaps
	s.Restart = types.RestartPolicyNo
	s.StopGracePeriod = ptr(types.Duration(grace))
	s.Logging = logging(ownLogSize)
	return s
}

// noNewPrivileges is the security_opt of B2.
const noNewPrivileges = "no-new-privileges:true"

// healthcheck is for plain Compose alone: our engines wait for the READY
// line. The interval is a compromise: each check is an exec in the container.
func healthcheck(command ...string) *types.HealthCheckConfig {
	return &types.HealthCheckConfig{
		Test:     append(types.HealthCheckTest{"CMD"}, command...),
		Interval: ptr(types.Duration(5 * time.Second)),
		Timeout:  ptr(types.Duration(5 * time.Second)),
		Retries:  ptr(uint64(12)),
	}
}
