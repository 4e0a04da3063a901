# Installs the gems that gems.txt beside it names into the current directory. No code
# of a gem is run, unless extensions are allowed: then those are built.
require "rubygems"
require "rubygems/package"
require "rubygems/installer"
require "net/http"
require "digest"
require "fileutils"

source, extensions = ARGV
home = Dir.pwd
cache = File.join(ENV.fetch("TMPDIR", "/tmp"), "gems")
FileUtils.mkdir_p(cache)

# Of a gem's platforms, the one that is this machine's most of all.
local = Gem::Platform.local
listed = File.readlines(File.join(__dir__, "gems.txt"), chomp: true).map { |line| line.split("\t", -1) }
chosen = listed.group_by(&:first).map do |name, all|
  own = all.select { |_, _, platform, _| platform != "" && platform != "ruby" && Gem::Platform.new(platform) === local }
  plain = all.select { |_, _, platform, _| platform == "" || platform == "ruby" }
  own.max_by { |_, _, platform, _| platform.length } || plain.first ||
    abort("#{name}: the lock file has it for #{all.map { |g| g[2] }.join(", ")} alone; add this server's: bundle lock --add-platform #{local}")
end

queue = chosen.dup
files = {}
failed = []
mutex = Mutex.new
8.times.map do
  Thread.new do
    while (gem = mutex.synchronize { failed.empty? ? queue.shift : nil })
      name, version, platform, sum = gem
      full = [name, version, platform].reject(&:empty?).join("-")
      begin
        answer = Net::HTTP.get_response(URI("#{source}/gems/#{full}.gem"))
        raise "the registry answered #{answer.code}: #{answer.body.to_s.lines.first.to_s.strip}" unless answer.code == "200"
        raise "its checksum is not the lock file's" unless sum.empty? || Digest::SHA256.hexdigest(answer.body) == sum
        file = File.join(cache, "#{full}.gem")
        File.binwrite(file, answer.body)
        spec = Gem::Package.new(file).spec
        raise "it holds #{spec.full_name}" unless spec.name == name && spec.version.to_s == version
        mutex.synchronize { files[gem] = [file, spec] }
      rescue StandardError => e
        mutex.synchronize { failed << "#{full}: #{e.message}" }
      end
    end
  end
end.each(&:join)
abort(failed.first) unless failed.empty?

built = chosen.select { |gem| !files[gem][1].extensions.empty? }.map { |gem| files[gem][1].full_name }
unless built.empty? || extensions == "with-extensions"
  abort("#{built.join(", ")} must be compiled, which runs code of theirs: lock a gem for this platform (bundle lock --add-platform #{local}), " \
        "or set `install_scripts: true` in the server's settings")
end

# The bin directory is in front of all others, and what is in there looks for gems anew.
chosen.each do |gem|
  Gem::Installer.at(files[gem][0], install_dir: home, bin_dir: File.join(home, "bin"), ignore_dependencies: true, force: true,
                                   document: [], wrappers: true, env_shebang: true).install
end
FileUtils.rm_rf(%w[cache doc build_info forge].map { |dir| File.join(home, dir) })
