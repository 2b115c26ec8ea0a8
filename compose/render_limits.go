package compose

import (
	"strconv"
	"strings"
	"time"

	"github.com/compose-spec/compose-go/v2/types"
)

func (e *emitter) mounts(s *types.ServiceConfig) {
	if len(s.Volumes) > 0 {
		e.raw(4, "volumes:")
	}
	for i := range s.Volumes {
		e.mount(&s.Volumes[i])
	}
	if len(s.Tmpfs) > 0 {
		e.raw(4, "tmpfs:")
	}
	for _, t := range s.Tmpfs {
		dir, _, _ := strings.Cut(t, ":")
		e.item(6, "tmpfs."+dir, t)
	}
}

// mount writes the long form: in the short one a colon in a path would change
// its meaning.
func (e *emitter) mount(v *types.ServiceVolumeConfig) {
	at := "volumes." + v.Target
	e.b = append(e.b, "      - type: "...)
	e.b = append(e.b, v.Type...)
	e.end(e.source(at))
	e.quiet(8, "source", at+".source", v.Source)
	e.quiet(8, "target", at+".target", v.Target)
	if v.ReadOnly {
		e.raw(8, "read_only: true")
	}
	if v.Volume != nil && v.Volume.NoCopy {
		e.raw(8, "volume: {nocopy: true}")
	}
}

func (e *emitter) limits(s *types.ServiceConfig) {
	if s.ShmSize > 0 {
		e.plain(4, "shm_size", "shm_size", formatSize(int64(s.ShmSize)))
	}
	e.plain(4, "mem_limit", "mem_limit", formatSize(int64(s.MemLimit)))
	e.plain(4, "memswap_limit", "memswap_limit", formatSize(int64(s.MemSwapLimit)))
	e.plain(4, "cpus", "cpus", strconv.FormatFloat(float64(s.CPUS), 'f', -1, 32))
	e.plain(4, "pids_limit", "pids_limit", strconv.FormatInt(s.PidsLimit, 10))
	if len(s.Ulimits) > 0 {
		e.raw(4, "ulimits:")
		for _, k := range sortedKeys(s.Ulimits) {
			u := s.Ulimits[k]
			e.raw(6, k+": {soft: "+strconv.Itoa(u.Soft)+", hard: "+strconv.Itoa(u.Hard)+"}")
		}
	}
}

func (e *emitter) logging(l *types.LoggingConfig) {
	if l == nil {
		return
	}
	e.raw(4, "logging:")
	e.raw(6, "driver: "+l.Driver)
	e.raw(6, "options:")
	for _, k := range sortedKeys(l.Options) {
		e.value(8, k, "logging."+k, l.Options[k])
	}
}

func (e *emitter) health(h *types.HealthCheckConfig) {
	if h == nil {
		return
	}
	e.raw(4, "healthcheck:")
	e.flow(6, "test", h.Test)
	e.raw(6, "interval: "+duration(time.Duration(*h.Interval)))
	e.raw(6, "timeout: "+duration(time.Duration(*h.Timeout)))
	e.raw(6, "retries: "+strconv.FormatUint(*h.Retries, 10))
}
