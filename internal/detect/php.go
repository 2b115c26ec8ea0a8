package detect

func php(p *project, f *Found) {
	if !p.has("composer.json") {
		return
	}
	f.find(p, "composer.json", "PHP with Composer", "preset packagist")
	f.preset("packagist", "for composer install")
	f.cache("composer.json", "composer")
	f.program("php", "composer")
	f.image("composer:2")
	test := ""
	if p.first("phpunit.xml", "phpunit.xml.dist") != "" {
		test = "vendor/bin/phpunit"
	}
	f.runs(p, "composer install", test)
}
