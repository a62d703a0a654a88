package dev.tailwright.gat.instrument;

import static net.bytebuddy.matcher.ElementMatchers.hasSuperType;
import static net.bytebuddy.matcher.ElementMatchers.isAbstract;
import static net.bytebuddy.matcher.ElementMatchers.isConstructor;
import static net.bytebuddy.matcher.ElementMatchers.nameStartsWith;
import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.none;
import static net.bytebuddy.matcher.ElementMatchers.not;
import static net.bytebuddy.matcher.ElementMatchers.takesArguments;

import java.lang.instrument.Instrumentation;
import net.bytebuddy.ByteBuddy;
import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.description.method.MethodDescription;
import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.dynamic.ClassFileLocator;
import net.bytebuddy.dynamic.scaffold.TypeValidation;
import net.bytebuddy.matcher.ElementMatcher;
import net.bytebuddy.pool.TypePool;
import net.bytebuddy.utility.JavaModule;

/** Which methods of which classes are instrumented, with what. */
public final class Installer {
    private static final ElementMatcher.Junction<TypeDescription> TOMCAT_PROCESSORS =
            nameStartsWith("org.apache.coyote.").and(hasSuperType(named("org.apache.coyote.AbstractProcessor")));
    private static final ElementMatcher.Junction<TypeDescription> COMPLETIONS =
            nameStartsWith("java.util.concurrent.CompletableFuture$");

    private final ClassFileLocator own = ClassFileLocator.ForClassLoader.of(Installer.class.getClassLoader());
    private AgentBuilder agent = new AgentBuilder.Default(new ByteBuddy().with(TypeValidation.DISABLED))
            .disableClassFormatChanges()
            .with(AgentBuilder.RedefinitionStrategy.RETRANSFORMATION)
            .with(AgentBuilder.PoolStrategy.Default.FAST)
            // Types that other agents have given to the bootstrap loader and added to the classes there.
            .with(AgentBuilder.LocationStrategy.ForClassLoader.STRONG.withFallbackTo(ClassFileLocator.ForClassLoader.ofSystemLoader()))
            .with(new Complaints())
            .ignore(none());

    private Installer() {}

    /** Called by Start. */
    public static void install(Instrumentation instrumentation) {
        Installer installer = new Installer();
        installer.addServers();
        installer.addClients();
        installer.addTasks();
        installer.agent.installOn(instrumentation);
    }

    private void addServers() {
        String exchange = "sun.net.httpserver.ExchangeImpl";
        add(named(exchange), isConstructor(), HttpServerAdvice.Admit.class.getName());
        add(named(exchange), named("sendResponseHeaders").and(takesArguments(2)), HttpServerAdvice.Reply.class.getName());
        String chain = "com.sun.net.httpserver.Filter$Chain";
        add(named(chain), named("doFilter"), HttpServerAdvice.Handle.class.getName());
        String tomcat = HttpServerAdvice.class.getPackageName() + ".TomcatAdvice$";
        String adapter = "org.apache.catalina.connector.CoyoteAdapter";
        add(named(adapter), named("service").and(takesArguments(2)), tomcat + "Service");
        add(named(adapter), named("postParseRequest").and(takesArguments(4)), tomcat + "Parse");
        add(named(adapter), named("asyncDispatch").and(takesArguments(3)), tomcat + "Dispatch");
        add(named("org.apache.coyote.Response"), named("setTrailerFields"), tomcat + "Trailers");
        add(named("org.apache.catalina.core.AsyncContextImpl"), named("start").and(takesArguments(1)), tomcat + "AsyncStart");
        addWhereDeclared(TOMCAT_PROCESSORS, named("prepareResponse").and(takesArguments(0)), tomcat + "Reply");
    }

    private void addClients() {
        ElementMatcher.Junction<MethodDescription> write = named("writeRequests").and(takesArguments(3));
        add(named("sun.net.www.http.HttpClient"), write, UrlConnectionAdvice.Call.class.getName());
        String request = "jdk.internal.net.http.HttpRequestImpl";
        add(named(request), isConstructor(), HttpClientAdvice.Make.class.getName());
        add(named(request), named("getUserHeaders"), HttpClientAdvice.Headers.class.getName());
    }

    private void addTasks() {
        String run = TaskAdvice.Run.class.getName();
        for (String task : new String[] {"FutureTask", "ForkJoinTask"}) {
            add(named("java.util.concurrent." + task), isConstructor(), TaskAdvice.Make.class.getName());
        }
        add(named("java.util.concurrent.FutureTask"), named("run").or(named("runAndReset")), run);
        add(named("java.util.concurrent.ForkJoinTask"), named("doExec"), run);
        addWhereDeclared(COMPLETIONS, named("tryFire").and(takesArguments(1)), run);
        addWhereDeclared(COMPLETIONS.and(nameStartsWith("java.util.concurrent.CompletableFuture$Async")), named("run"), run);
        String executor = "java.util.concurrent.ThreadPoolExecutor";
        add(named(executor), named("execute"), TaskAdvice.Execute.class.getName());
        add(named(executor), named("remove"), TaskAdvice.Remove.class.getName());
        add(named(executor), named("reject"), TaskAdvice.Reject.class.getName());
        add(named(executor), named("shutdownNow"), TaskAdvice.ShutdownNow.class.getName());
    }

    /** A class that has to have such a method; a version of it that has none is complained of. */
    private void add(ElementMatcher<TypeDescription> type, ElementMatcher<? super MethodDescription> method, String adviceName) {
        add(type, method, adviceName, true);
    }

    /** Classes some of which have such a method of their own. */
    private void addWhereDeclared(
            ElementMatcher<TypeDescription> type, ElementMatcher.Junction<MethodDescription> method, String adviceName) {
        add(type, method.and(not(isAbstract())), adviceName, false);
    }

    private void add(
            ElementMatcher<TypeDescription> type, ElementMatcher<? super MethodDescription> method, String name, boolean isNeeded) {
        agent = agent.type(type).transform((builder, found, loader, module, domain) -> {
            if (isNeeded && found.getDeclaredMethods().filter(method).isEmpty()) {
                throw new IllegalStateException("expected a method for " + name);
            }
            return builder.visit(advice(name, loader).on(method));
        });
    }

    /** Types of Tomcat are known to the loader of Tomcat alone. */
    private Advice advice(String name, ClassLoader loader) {
        ClassFileLocator all = new ClassFileLocator.Compound(own, ClassFileLocator.ForClassLoader.of(loader));
        return Advice.to(TypePool.Default.of(all).describe(name).resolve(), all);
    }

    /** Says which classes cannot be instrumented: calls and requests by them are not covered. */
    private static final class Complaints extends AgentBuilder.Listener.Adapter {
        @Override
        public void onError(String type, ClassLoader loader, JavaModule module, boolean isLoaded, Throwable error) {
            System.err.println("tailwright-gat: " + type + " is not instrumented in this version of Java or Tomcat, so that its"
                    + " requests carry no tags, and tags are not removed there: " + error);
        }
    }
}
