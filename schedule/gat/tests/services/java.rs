//! The agent for Java and its tests, built once and kept: Maven fetches the jars by name.

use super::{HOSTS, bindings};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use testkit::program;

/// Exit code of `build.sh` when the jars are unavailable.
const NO_JARS: i32 = 3;
/// Oldest version that the agent supports.
const VERSION_LEAST: u32 = 17;
/// SLOs of the paths that tests request.
const SLOS: &str = "slos=/soon=50ms,/later=5s";

/// The agent and the test programs.
#[derive(Debug, Clone)]
pub(crate) struct JavaBuild {
    java: PathBuf,
    folder: PathBuf,
}

/// Builds at the first call; `None`, with a message, if that is impossible.
pub(crate) fn java() -> Option<JavaBuild> {
    static BUILD: OnceLock<Option<JavaBuild>> = OnceLock::new();
    BUILD.get_or_init(build).clone()
}

fn build() -> Option<JavaBuild> {
    let java = program("java")?;
    let javac = program("javac")?;
    program("mvn")?;
    if version(&javac) < VERSION_LEAST {
        testkit::skip(&format!("javac is older than version {VERSION_LEAST}"));
        return None;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("java");
    let status = Command::new("sh").arg(bindings().join("java/build.sh")).arg(&folder).status();
    let status = status.expect("sh starts");
    if status.code() == Some(NO_JARS) {
        testkit::skip("the jars of schedule/bindings/java/pom.xml cannot be fetched by Maven");
        return None;
    }
    assert!(status.success(), "build.sh: {status}");
    let build = JavaBuild { java, folder };
    build.compile_tests(&javac);
    std::fs::create_dir_all(build.temporary()).expect("the folder of the build is ours");
    Some(build)
}

/// Returns the first number in the output of `javac -version`; 0 if there is none.
fn version(javac: &Path) -> u32 {
    let output = Command::new(javac).arg("-version").output().expect("javac starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let number =
        text.split_once(' ').and_then(|(_, version)| version.trim().split(['.', '-']).next()?.parse().ok());
    number.unwrap_or(0)
}

impl JavaBuild {
    fn compile_tests(&self, javac: &Path) {
        let folder = bindings().join("java/test");
        let sources = [folder.clone(), folder.join("tests"), folder.join("dev/tailwright/gat")];
        let files = sources.iter().flat_map(|source| std::fs::read_dir(source).expect("it is in the tree"));
        let files = files.map(|file| file.expect("it is readable").path());
        let mut command = Command::new(javac);
        command.arg("-Xlint:all").arg("-Werror").arg("-d").arg(self.folder.join("test"));
        command.arg("-cp").arg(self.class_path(&["classes", "jars/tomcat-embed-core-10.1.40.jar"]));
        command.args(files.filter(|path| path.extension().is_some_and(|ending| ending == "java")));
        assert!(command.status().expect("javac starts").success());
    }

    /// Folder for files that killed programs leave.
    fn temporary(&self) -> PathBuf {
        self.folder.join("temporary")
    }

    fn class_path(&self, parts: &[&str]) -> String {
        let paths = parts.iter().map(|part| self.folder.join(part).display().to_string());
        paths.collect::<Vec<_>>().join(":")
    }

    /// Returns a Java command without options from the environment, for which Java prints a line.
    fn plain(&self) -> Command {
        let mut command = Command::new(&self.java);
        for name in ["JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS"] {
            command.env_remove(name);
        }
        command.current_dir(bindings().join("java"));
        command
    }

    fn command(&self, agents: &[String]) -> Command {
        let jars = ["test", "jars/tomcat-embed-core-10.1.40.jar", "jars/tomcat-annotations-api-10.1.40.jar"];
        let mut command = self.plain();
        // Less compilation for short programs, and no warnings about archives that do not fit the agent.
        command.args(["-XX:TieredStopAtLevel=1", "-Xshare:off", "-Xmx128m"]);
        command.arg(format!("-Djava.io.tmpdir={}", self.temporary().display()));
        command.args(agents.iter().map(|agent| format!("-javaagent:{}/{agent}", self.folder.display())));
        command.arg("-cp").arg(self.class_path(&jars));
        command
    }

    fn agent(role: &str) -> String {
        let slos = if role == "edge" { SLOS } else { "" };
        format!("tailwright-gat.jar=role={role};hosts={HOSTS};{slos}")
    }

    pub(super) fn service(&self, role: &str) -> Command {
        let mut command = self.command(&[Self::agent(role)]);
        command.arg("ExampleService");
        command
    }

    /// Spans are not exported; recording them does not affect baggage.
    pub(super) fn service_with_opentelemetry(&self, role: &str) -> Command {
        let opentelemetry = "jars/opentelemetry-javaagent-2.15.0.jar".to_owned();
        let mut command = self.command(&[Self::agent(role), opentelemetry]);
        command.arg("ExampleService");
        for exporter in ["TRACES", "METRICS", "LOGS"] {
            command.env(format!("OTEL_{exporter}_EXPORTER"), "none");
        }
        command
    }

    /// Runs the test programs: without the agent, as an inner service, and at the edge.
    pub(crate) fn test(&self) {
        let mut cases = self.plain();
        cases.arg("-cp").arg(self.class_path(&["classes", "test"])).arg("dev.tailwright.gat.TestCases");
        run(cases);
        for (role, program) in [("inner", "TestTasks"), ("inner", "TestCalls"), ("edge", "TestTomcat")] {
            let mut command = self.command(&[Self::agent(role)]);
            command.arg(format!("tests.{program}"));
            run(command);
        }
        self.test_complaints();
    }

    /// A wrong option ends the program; an incompatible class is named.
    fn test_complaints(&self) {
        let mut wrong = self.command(&["tailwright-gat.jar=rol=edge".to_owned()]);
        let output = wrong.arg("tests.TestCalls").output().expect("java starts");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains("'rol=edge' is no option"), "{errors}");
        let mut other = self.plain();
        other.arg(format!("-javaagent:{}/{}", self.folder.display(), Self::agent("inner")));
        other.arg("test/other/Response.java");
        let output = other.output().expect("java starts");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains("org.apache.coyote.Response is not instrumented"), "{errors}");
        assert_eq!(output.stdout, b"it runs\n", "{errors}");
    }
}

fn run(mut command: Command) {
    let output = command.output().expect("java starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{command:?}: {}\n{errors}", output.status);
}
