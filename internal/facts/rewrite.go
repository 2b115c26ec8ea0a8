package facts

// Rewrite runs write, which gives the file name the text after in the place of before,
// and updates the records: a change by this program isn't one by a worker. A file that
// had changed before stays a change in a record, unless own, the record of the file's
// project, has its text: others have an older one then. So does what is there after it if
// it isn't that text. own may be nil.
func Rewrite(own *Record, others []*Record, name string, before, after []byte, write func() error) error {
	var updates []func() error
	_, there, _ := own.accepted(name)
	accepted := there && own.Definition[name] == string(before)
	records := others
	if own != nil {
		records = append([]*Record{own}, others...)
	}
	for _, r := range records {
		baseline, err := r.Baseline()
		if err != nil {
			baseline = nil
		}
		now := Snapshot{}
		pinned := now.file(name) == nil && baseline[name] != "" && baseline[name] == now[name]
		old, had := r.Definition[name]
		had = had && old == string(before)
		if r != own && accepted && r.concerns(name, baseline) {
			pinned, had = baseline != nil, had || r.Definition[name] != ""
		}
		if pinned {
			updates = append(updates, func() error {
				if is := digestOf(name, after); baseline[name] == "" && is != "" {
					baseline[name] = is
				}
				baseline.Pin(map[string][]byte{name: after})
				return baseline.Save(r.at)
			})
		}
		if had {
			updates = append(updates, func() error {
				r.Definition[name] = string(after)
				return r.Save()
			})
		}
	}
	if err := write(); err != nil {
		return err
	}
	for _, update := range updates {
		if err := update(); err != nil {
			return err
		}
	}
	return nil
}
