//go:build linux

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/llmdo/workshop/firewall"
)

// network runs the Go benchmarks of room, guard and policy, which make the
// namespaces and the test internet that they need, and compares their figures.
func (b *bench) network() error {
	m, err := b.goBench("internal/room", "MakeRoom", "20x")
	if err != nil {
		return err
	}
	const ms, us = 1e6, 1e3
	room, peer := m["MakeRoom/process ns/op"]/ms, m["MakeRoom/iptables-restore ns/op"]/ms
	b.add(row{what: "make a room, whole process", against: "iptables-restore + ip6tables-restore", ours: room, other: peer, unit: "ms", limit: 0.15})
	b.add(row{what: "make a room, without the process", against: "iptables-restore + ip6tables-restore", ours: m["MakeRoom/in-process ns/op"] / ms, other: peer, unit: "ms", limit: 0.15})

	if m, err = b.goBench("firewall", "PolicyLoad|Match", "0.2s"); err != nil {
		return err
	}
	b.add(row{what: "load 10,000 names", against: "its limit", ours: m["PolicyLoad/10000 ns/op"] / ms, other: 50, unit: "ms", limit: 1})
	b.add(row{what: "decide, 10,000 names", against: "an empty policy", ours: m["Match/10000 ns/op"] / us, other: m["Match/0 ns/op"] / us, unit: "µs",
		note: "negligible compared with a connection's 100 µs"})

	if m, err = b.goBench("internal/guard", "Guard", "0.5s"); err != nil {
		return err
	}
	for _, r := range []struct {
		what, name string
		limit      float64
	}{{"DNS answer from the cache, p99", "dns", 1}, {"DNS answer, not in the cache, p99", "dns-miss", 2}} {
		guard, direct := m["Guard/"+r.name+"/guard p99-ns"]/ms, m["Guard/"+r.name+"/direct p99-ns"]/ms
		b.add(row{what: r.what, against: "its limit above the direct " + number(direct, "ms"), ours: max(0, guard-direct), other: r.limit, unit: "ms", limit: 1})
	}
	guard, direct := m["Guard/connect+byte/guard ns/op"]/ms, m["Guard/connect+byte/direct ns/op"]/ms
	b.add(row{what: "connect + first byte, added", against: "its limit above the direct " + number(direct, "ms"), ours: max(0, guard-direct), other: 0.3, unit: "ms", limit: 1})
	b.add(row{what: "256 MiB in one stream", against: "direct", ours: m["Guard/throughput/guard ns/op"] / ms, other: m["Guard/throughput/direct ns/op"] / ms, unit: "ms", limit: 2})
	if err := b.endpoints(); err != nil {
		return err
	}
	return b.guardMemory()
}

// endpoints adds the rows of an endpoint with a credential, and of an ordinary line in the
// same guard, each against TLS without a guard.
func (b *bench) endpoints() error {
	m, err := b.goBench("internal/guard", "Endpoint", "2s")
	if err != nil {
		return err
	}
	const ms = 1e6
	at := func(name, way string) float64 { return m["Endpoint/"+name+" "+way+"-ns"] / ms }
	direct := at("first-byte", "direct")
	b.add(row{what: "endpoint: TLS + first byte, added", against: "its limit above the direct " + number(direct, "ms"), ours: max(0, at("first-byte", "endpoint")-direct), other: 0.7, unit: "ms", limit: 1})
	b.add(row{what: "ordinary line: TLS + first byte", against: "direct TLS", ours: at("first-byte", "line"), other: direct, unit: "ms"})
	for _, x := range []struct{ what, name string }{{"256 MiB in one stream", "throughput"}, {"1,000 requests on one connection", "requests"}} {
		for _, way := range []struct {
			what, name string
			limit      float64
		}{{"endpoint", "endpoint", 1 / 0.4}, {"ordinary line", "line", 2}} {
			if x.name == "requests" {
				way.limit = 0 // no promise
			}
			b.add(row{what: way.what + ": " + x.what, against: "direct TLS", ours: at(x.name, way.name), other: at(x.name, "direct"), unit: "ms", limit: way.limit})
		}
	}
	return nil
}

// guardMemory adds the rows of the guard's memory, the kernel's buffers included.
func (b *bench) guardMemory() error {
	m, err := b.goBench("internal/guard", "Memory", "1x")
	if err != nil {
		return err
	}
	const mib = 1 << 20
	b.add(row{what: "guard, 1,000 ordinary connections", against: "its limit", ours: m["Memory/ordinary MiB"], other: 35, unit: "MiB", limit: 1})
	worst, kind, room := 0.0, "", 0.0
	for k, v := range m {
		name, unit, _ := strings.Cut(strings.TrimPrefix(k, "Memory/"), " ")
		switch {
		case unit == "MiB" && v > worst:
			worst, kind = v, name
		case unit == "room-MiB":
			room = max(room, v)
		}
	}
	b.add(row{what: "guard, all places in their worst state", against: "its memory limit", ours: worst, other: firewall.GuardMemory / mib, unit: "MiB", limit: 0.8, note: "the kind that costs the most is " + kind})
	b.add(row{what: "room, all published connections in their worst state", against: "its memory limit", ours: room, other: firewall.RoomMemory / mib, unit: "MiB", limit: 0.8})
	return nil
}

// goBench runs benchmarks of a package three times, or once if each is a full round, and
// returns the medians by name and unit, such as "MakeRoom/process ns/op".
func (b *bench) goBench(pkg, pattern, each string) (map[string]float64, error) {
	count := "3"
	if each == "1x" {
		count = "1"
	}
	cmd := exec.CommandContext(b.ctx, "go", "test", "-run", "^$", "-bench", "^Benchmark("+pattern+")$", "-benchtime", each, "-count", count, "./"+pkg)
	cmd.Dir = filepath.Dir(b.bin)
	cmd.Env = append(os.Environ(), "WORKSHOP_INIT="+filepath.Join(b.bin, "workshop-init-linux-"+runtime.GOARCH))
	cmd.WaitDelay = 10 * time.Second // a benchmark that was killed leaves rooms that hold its output open
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", pkg, err, out)
	}
	all := map[string][]float64{}
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		f := strings.Fields(s.Text())
		name, ok := strings.CutPrefix(s.Text(), "Benchmark")
		if !ok || len(f) < 4 {
			continue
		}
		name = strings.Fields(name)[0]
		if i := strings.LastIndexByte(name, '-'); i > 0 {
			name = name[:i] // GOMAXPROCS
		}
		for i := 2; i+1 < len(f); i += 2 {
			v, err := strconv.ParseFloat(f[i], 64)
			if err != nil {
				return nil, fmt.Errorf("%s: %q: %w", pkg, s.Text(), err)
			}
			all[name+" "+f[i+1]] = append(all[name+" "+f[i+1]], v)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no benchmark ran (root is needed):\n%s", pkg, out)
	}
	medians := map[string]float64{}
	for k, v := range all {
		slices.Sort(v)
		medians[k] = v[len(v)/2]
	}
	return medians, nil
}
