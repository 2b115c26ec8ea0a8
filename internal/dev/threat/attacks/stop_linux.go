package attacks

import (
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/probe"
)

// stopStarted stops whatever comes into the container from outside, while it is
// still on its way: an engine waits for that.
func stopStarted([]string, map[string]string) (string, string) {
	stopped := 0
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		dir, err := os.Open("/proc")
		if err != nil {
			return "ERROR", err.Error()
		}
		names, _ := dir.Readdirnames(-1)
		dir.Close()
		for _, name := range names {
			pid := number(name, 0)
			if pid <= 1 {
				continue
			}
			stat, err := os.ReadFile("/proc/" + name + "/stat")
			if err != nil {
				continue
			}
			_, rest, _ := strings.Cut(string(stat), ") ")
			if f := strings.Fields(rest); len(f) > 1 && f[1] == "0" && unix.Kill(pid, unix.SIGSTOP) == nil {
				stopped++
			}
		}
		if stopped > 0 { // the engine waits: no hurry any more
			time.Sleep(10 * time.Millisecond)
		}
	}
	return strconv.Itoa(stopped), ""
}

// exchangeFIFO makes a file that is a FIFO at each second look.
func exchangeFIFO(words []string, _ map[string]string) (string, string) {
	file, fifo := words[0], words[0]+".fifo"
	if err := os.WriteFile(file, []byte("file"), 0o644); err != nil {
		return probe.Seen(err)
	}
	if err := unix.Mkfifo(fifo, 0o644); err != nil {
		return probe.Seen(err)
	}
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); {
		if err := unix.Renameat2(unix.AT_FDCWD, file, unix.AT_FDCWD, fifo, unix.RENAME_EXCHANGE); err != nil {
			return probe.Seen(err)
		}
	}
	return "ok", ""
}
