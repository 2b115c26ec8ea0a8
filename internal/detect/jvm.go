package detect

func jvm(p *project, f *Found) {
	gradle := p.first("build.gradle.kts", "build.gradle", "settings.gradle.kts", "settings.gradle")
	switch {
	case p.has("pom.xml"):
		tool := "mvn"
		if p.has("mvnw") {
			tool = "./mvnw"
		} else {
			f.program("mvn")
		}
		f.find(p, "pom.xml", "Java with Maven", "preset maven")
		f.preset("maven", "for "+tool)
		f.cache("pom.xml", "maven")
		f.runs(p, "", tool+" test")
	case gradle != "":
		tool := "gradle"
		if p.has("gradlew") {
			tool = "./gradlew"
		} else {
			f.program("gradle")
		}
		f.find(p, gradle, "Java with Gradle", "presets gradle, maven")
		f.preset("gradle", "for "+tool)
		f.preset("maven", "for "+tool)
		f.cache(gradle, "gradle")
		f.runs(p, "", tool+" test")
	default:
		return
	}
	f.program("java")
	f.image("maven:3")
	f.Builds = true
}
