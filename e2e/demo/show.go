package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/lib/clip"
)

// seen is what a probe prints, see internal/probe. It is read from its JSON:
// the demo knows nothing that the worker didn't say.
type seen struct {
	Probe, Seen, Detail string
	Millis              float64 `json:"ms"`
}

// try is one thing that the worker does. Want are the words that it may see;
// Control is what an ordinary container must see of it, or "" where there is
// no control but another line.
type try struct {
	text    string
	probe   string
	want    []string
	control []string
	// beside is the control's probe where it differs: an ordinary container has
	// no resolver that knows the names of the test internet.
	beside string
}

// longest is how long a refusal may take before it counts as a timeout.
const longest = time.Second

var allowed = []try{
	{"reads a file of a read-only mount", "read /workspace/input/letter.txt", []string{"ok"}, nil, ""},
	{"writes a file to a read-write mount", `write /workspace/output/report.txt text="written by the worker\n"`, []string{"ok"}, nil, ""},
	{"reads it back", "read /workspace/output/report.txt", []string{"ok"}, nil, ""},
	{"resolves the allowed name", "lookup allowed.example.org", []string{"198.51.100.10"}, nil, ""},
	{"reaches it by name over TLS", "http https://allowed.example.org/hello ca=/ca.pem", []string{"200"}, []string{"200"}, "http https://allowed.example.org/hello ca=/ca.pem connect=198.51.100.10:443"},
	{"listens and connects on ::1", "loop [::1]:8080", []string{"ok"}, nil, ""},
}

// cut is how the guard ends a connection after it saw whom it is for.
var cut = []string{"ECONNRESET", "EOF", "TLSALERT"}

var refused = []try{
	{"writes to the read-only mount", "write /workspace/input/new", []string{"EROFS"}, nil, ""},
	{"resolves a name that isn't allowed", "dns 198.51.100.53 denied.example.org", []string{"NXDOMAIN"}, []string{"198.51.100.11"}, ""},
	{"TLS to that name at its address", "http https://denied.example.org/ ca=/ca.pem connect=198.51.100.11:443", cut, []string{"200"}, ""},
	{"connects to an address directly", "http https://198.51.100.66/ ca=/ca.pem", cut, []string{"200"}, ""},
	{"the allowed host on another port", "connect 198.51.100.10:8000", []string{"ECONNREFUSED"}, []string{"open"}, ""},
	{"ICMP echo", "icmp 198.51.100.66", []string{"EPERM", "EACCES"}, []string{"reply"}, ""},
	{"UDP", "udp 198.51.100.66:5000", []string{"EPERM", "ECONNREFUSED"}, []string{"data"}, ""},
	{"IPv6 (its control is ::1 above)", "connect [2001:db8:1::66]:9000", []string{"ECONNREFUSED", "EADDRNOTAVAIL", "EAFNOSUPPORT", "ENETUNREACH"}, nil, ""},
}

// show runs everything and prints it. It returns how many lines differ.
func (s *stage) show() (failed int, err error) {
	w := os.Stdout
	fmt.Fprintf(w, "\n%s\n%s\n", row("", "", "", "an ordinary"), row("The worker tries", "and sees", "after", s.beside.name()+" sees"))
	for _, part := range []struct {
		title string
		tries []try
	}{{"Allowed:", allowed}, {"Refused:", refused}} {
		fmt.Fprintln(w, part.title)
		inside, err := s.inWorker(part.tries)
		if err != nil {
			return failed, err
		}
		outside, err := s.inOrdinary(part.tries)
		if err != nil {
			return failed, err
		}
		for i, t := range part.tries {
			in, out := inside[i], outside[i]
			ok := slices.ContainsFunc(t.want, func(want string) bool { return matches(in.Seen, want) }) && in.Millis < float64(longest.Milliseconds())
			beside := ""
			if t.control != nil {
				ok = ok && slices.ContainsFunc(t.control, func(want string) bool { return matches(out.Seen, want) })
				beside = out.Seen
			}
			failed += mark(w, ok, t.text, short(in.Seen), millis(in), short(beside))
			if text := detail(in); text != "" {
				fmt.Fprintln(w, "    "+text)
			}
		}
	}
	n, err := s.otherResolver(w)
	if err != nil {
		return failed, err
	}
	failed += n
	if n, err = s.owner(w); err != nil {
		return failed, err
	}
	failed += n
	fmt.Fprintln(w, legend)
	return failed, nil
}

// legend explains the words that aren't the kernel's.
const legend = `
TLSALERT: the guard saw whom the connection is for and ended it with an alert.
It dialled nobody. EPERM, ECONNREFUSED: the room's own rules refused at once.`

// short is the first of a list, which fits into its column.
func short(seen string) string {
	if first, _, more := strings.Cut(seen, ","); more {
		return first + "…"
	}
	return seen
}

// matches: names resolve to lists; one of them is enough.
func matches(got, want string) bool { return slices.Contains(strings.Split(got, ","), want) }

// detail is the text that a probe read, where there is some.
func detail(r seen) string {
	text := strings.ReplaceAll(strings.TrimSpace(r.Detail), "\n", " ")
	if r.Seen != "ok" && r.Seen != "200" || text == "" {
		return ""
	}
	return clip.Runes(text, 70)
}

func millis(r seen) string { return fmt.Sprintf("%.1f ms", r.Millis) }

// row is a line of the table, which fits into 80 columns.
func row(cells ...string) string {
	return strings.TrimRight(fmt.Sprintf("%-39s %-14s %8s  %s", cells[0], cells[1], cells[2], cells[3]), " ")
}

func mark(w io.Writer, ok bool, cells ...string) int {
	sign, n := "✓", 0
	if !ok {
		sign, n = "✗", 1
	}
	cells[0] = sign + " " + cells[0]
	fmt.Fprintln(w, row(cells...))
	return n
}

// otherResolver asks a name server of the worker's own choice, and the test
// internet whether that server got a packet.
func (s *stage) otherResolver(w io.Writer) (failed int, err error) {
	const key = "udp 198.51.100.54:53"
	question := []try{{probe: "dns 198.51.100.54 allowed.example.org"}}
	before, err := s.packets(key)
	if err != nil {
		return 0, err
	}
	in, err := s.inWorker(question)
	if err != nil {
		return 0, err
	}
	between, err := s.packets(key)
	if err != nil {
		return 0, err
	}
	out, err := s.inOrdinary(question)
	if err != nil {
		return 0, err
	}
	after, err := s.packets(key)
	if err != nil {
		return 0, err
	}
	fmt.Fprintln(w, "A DNS server of the worker's own choice:")
	failed += mark(w, matches(in[0].Seen, "198.51.100.10"), "asks 198.51.100.54 for that name", in[0].Seen, millis(in[0]), out[0].Seen)
	failed += mark(w, between == before && after > between, "packets that 198.51.100.54 got", fmt.Sprint(between-before), "", fmt.Sprint(after-between))
	return failed, nil
}

// owner compares who owns the worker's file on this machine with who the
// worker says that it is.
func (s *stage) owner(w io.Writer) (failed int, err error) {
	in, err := s.inWorker([]try{{probe: "uid"}})
	if err != nil {
		return 0, err
	}
	info, err := os.Stat(filepath.Join(s.project(), "output/report.txt"))
	if err != nil {
		return 0, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, errors.New("no owner")
	}
	fmt.Fprintln(w, "Its file on this machine:")
	owner := fmt.Sprintf("%d:%d", st.Uid, st.Gid)
	return mark(w, owner == in[0].Seen && st.Uid != 0, "its uid, and the file's owner here", in[0].Seen, "", owner), nil
}

func (s *stage) inWorker(tries []try) ([]seen, error) {
	return s.probes(exec.CommandContext(s.ctx, filepath.Join(s.bin, "workshop"), append([]string{"--engine", s.engine, "exec", "worker", "--", compose.InitPath, "probe"}, texts(tries)...)...), len(tries))
}

func (s *stage) inOrdinary(tries []try) ([]seen, error) {
	return s.probes(s.beside.ordinary(s, controls(tries)), len(tries))
}

func texts(tries []try) []string {
	var out []string
	for _, t := range tries {
		out = append(out, t.probe)
	}
	return out
}

func controls(tries []try) []string {
	out := texts(tries)
	for i, t := range tries {
		if t.beside != "" {
			out[i] = t.beside
		}
	}
	return out
}

func (s *stage) probes(cmd *exec.Cmd, want int) ([]seen, error) {
	var out, errs bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.project(), &out, &errs
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s%s", strings.Join(cmd.Args, " "), err, out.String(), errs.String())
	}
	if s.raw {
		fmt.Print(out.String())
	}
	var all []seen
	for d := json.NewDecoder(&out); d.More(); {
		var r seen
		if err := d.Decode(&r); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	if len(all) != want {
		return nil, fmt.Errorf("%s: %d lines, want %d", cmd.Args[0], len(all), want)
	}
	return all, nil
}
