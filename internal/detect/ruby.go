package detect

func ruby(p *project, f *Found) {
	if !p.has("Gemfile") {
		return
	}
	f.find(p, "Gemfile", "Ruby with Bundler", "preset rubygems")
	f.preset("rubygems", "for bundle install")
	f.cache("Gemfile", "bundler")
	f.program("ruby", "bundle")
	f.image("ruby:3")
	f.env("BUNDLE_PATH", "/workspace/vendor/bundle", "gems stay in the project")
	test := "bundle exec rake test"
	if p.hasDir("spec") {
		test = "bundle exec rspec"
	}
	f.runs(p, "bundle install", test)
}
