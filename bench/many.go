//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/llmdo/workshop/internal/lib/boundedfile"
)

// manyNamespace and manyDocker are how many workshops are up at once.
const (
	manyNamespace = 100
	manyDocker    = 30
)

// many measures workshops that are up at the same time: memory and the time of `ls`.
func (b *bench) many() error {
	if err := b.importImage(); err != nil {
		return err
	}
	for _, uid := range []int{0, benchUser} {
		if err := b.manyOf(uid, "namespace", manyNamespace); err != nil {
			return err
		}
	}
	return b.manyOf(0, "docker", manyDocker)
}

func (b *bench) manyOf(uid int, engine string, n int) (err error) {
	u := &user{uid: uid, home: filepath.Join(b.dir, fmt.Sprintf("many-%s-%d", engine, uid))}
	who := engine
	var flags []string
	if engine == "namespace" {
		who += map[bool]string{true: ", root", false: ", rootless"}[uid == 0]
	}
	if uid != 0 {
		flags = []string{"--without-limits"}
	}
	var dirs []string
	for i := range n {
		dir := filepath.Join(u.home, strconv.Itoa(i))
		dirs = append(dirs, dir)
		if err := writeMany(dir, "bench-many-"+strconv.Itoa(i)); err != nil {
			return err
		}
	}
	if err := filepath.WalkDir(u.home, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, uid, uid)
	}); err != nil {
		return err
	}
	defer func() {
		if down := u.command(b, u.home, b.workshop(), "down", "--all", "--yes", "--engine", engine)(); err == nil {
			err = down
		}
	}()
	before, err := usedMemory()
	if err != nil {
		return err
	}
	start := time.Now()
	for _, dir := range dirs {
		if err := u.command(b, dir, b.workshop(), append([]string{"--engine", engine, "up"}, flags...)...)(); err != nil {
			return err
		}
	}
	each := time.Since(start).Seconds() * 1000 / float64(n)
	time.Sleep(5 * time.Second) // what starts has come to rest
	after, err := usedMemory()
	if err != nil {
		return err
	}
	t, err := b.compete(max(11, b.rounds), contender{u.command(b, "/", b.workshop(), "ls", "--format", "json", "--engine", engine), 1})
	if err != nil {
		return err
	}
	all := fmt.Sprintf("%d workshops up, %s", n, who)
	shares, text := sharesOf(u.home)
	grown := func(kind string) float64 { return float64(after[kind]-before[kind]) / float64(n) / mega }
	memory := row{what: all + ": memory of each", against: "its limit", ours: float64(shares) / float64(n) / mega, other: 12, unit: "MB", limit: 1,
		note: fmt.Sprintf("proportional set sizes of its processes (%s); meanwhile the whole machine used %.1f MB more per workshop, %.1f MB of that the kernel's own, others' work included", text, grown("used"), grown("kernel"))}
	b.add(memory)
	b.add(row{what: all + ": ls", against: "its limit", ours: t[0].median(), other: 300, unit: "ms", limit: 1, note: fmt.Sprintf("p95 %.0f ms", t[0].p(95))})
	b.add(row{what: all + ": up of each", against: "", ours: each, unit: "ms"})
	return nil
}

func writeMany(dir, name string) error {
	if err := os.MkdirAll(filepath.Join(dir, "workers"), 0o755); err != nil {
		return err
	}
	for file, text := range map[string]string{
		"workshop.yaml":  "workshop:\n  name: " + name + "\n  container:\n    image: host\n    network: {mode: restricted, allow: [api.example.org]}\n    ports: [\"0:8080\"]\n  workers: [one]\n",
		"workers/one.md": "---\nname: one\ndescription: Measures nothing itself.\nallowed-tools: Read\n---\nYou are measured.\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// usedMemory is what the machine doesn't have available for new programs, which counts no
// cache, and what of it is the kernel's own, in bytes.
func usedMemory() (map[string]int64, error) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return nil, err
	}
	field := func(name string) int64 {
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) > 1 && f[0] == name+":" {
				n, _ := strconv.ParseInt(f[1], 10, 64)
				return n << 10
			}
		}
		return 0
	}
	return map[string]int64{
		"used":   field("MemTotal") - field("MemAvailable"),
		"kernel": field("SUnreclaim") + field("KernelStack") + field("PageTables") + field("Percpu"),
	}, nil
}

// sharesOf sums up the proportional set sizes of the processes of our programs, by the
// supervisors' state below home, and says them by kind. The processes of other workshops
// of this machine count too.
func sharesOf(home string) (sum int64, text string) {
	sums, counts := map[string]int64{}, map[string]int{}
	paths, _ := filepath.Glob("/proc/[0-9]*/smaps_rollup")
	for _, path := range paths {
		args, err := boundedfile.Read(filepath.Join(filepath.Dir(path), "cmdline"), 1<<20)
		words := strings.Split(string(args), "\x00")
		if err != nil || len(words) < 2 || filepath.Base(words[0]) != "workshop-init" {
			continue
		}
		if words[1] == "supervise" && !strings.Contains(string(args), home) {
			continue
		}
		text, _ := boundedfile.Read(path, 64<<10) // it has ended
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) > 1 && f[0] == "Pss:" {
				n, _ := strconv.ParseInt(f[1], 10, 64)
				sum += n << 10
				sums[words[1]] += n << 10
				counts[words[1]]++
			}
		}
	}
	var parts []string
	for _, kind := range []string{"supervise", "guard", "room", "gate"} {
		if counts[kind] > 0 {
			parts = append(parts, fmt.Sprintf("%s %.1f MB", kind, float64(sums[kind])/float64(counts[kind])/mega))
		}
	}
	return sum, strings.Join(parts, ", ")
}
