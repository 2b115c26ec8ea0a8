package facts

// Rewrite runs write, which gives the file name the text after, and updates the snapshots
// in the directories: a change by this program isn't one by a worker. A file that had
// changed before stays a change, and so does what is there now if it isn't that text.
func Rewrite(dirs []string, name string, after []byte, write func() error) error {
	for _, dir := range dirs {
		s, err := LoadSnapshot(dir)
		if err != nil || s == nil {
			continue
		}
		now := Snapshot{}
		if err := now.file(name); err != nil || s[name] == "" || s[name] != now[name] {
			break
		}
		if err := write(); err != nil {
			return err
		}
		s.Pin(map[string][]byte{name: after})
		return s.Save(dir)
	}
	return write()
}
