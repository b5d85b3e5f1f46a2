//! Each thread's current plugin call, for the watchdog, the end of a run and signal handlers.
//!
//! Each thread that calls plugins has a slot of atomics. A call costs a few stores and no system
//! call. Slots and call sites are never freed, so that signal handlers can read them. A slot is
//! reused after its thread has ended, and each plugin file has one call site.

use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use crate::faults::Faults;
use crate::sync::locked;

/// A plugin function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Function {
    /// The file's initialisers and `longwire_plugin`.
    Load,
    Create,
    Lose,
    Delay,
    Ready,
    Depart,
    Rewrite,
    Destroy,
}

/// Function names, in the order of [`Function`].
const NAMES: [&str; 8] = [
    "longwire_plugin",
    "create",
    "lose",
    "delay",
    "ready",
    "depart",
    "rewrite",
    "destroy",
];

impl Function {
    /// Returns the function's name in the header.
    pub fn name(self) -> &'static str {
        NAMES[self as usize]
    }
}

/// A plugin file as the target of calls.
#[derive(Debug)]
pub(crate) struct CallSite {
    /// The path given by the user.
    file: String,
    /// Runs that use the plugin and receive its faults.
    runs: Mutex<Vec<Weak<OnceLock<String>>>>,
}

/// All call sites, one per plugin file.
static SITES: Mutex<Vec<&'static CallSite>> = Mutex::new(Vec::new());

impl CallSite {
    /// Returns the call site of a plugin file.
    pub fn of(file: &str) -> &'static CallSite {
        let mut sites = locked(&SITES);
        if let Some(site) = sites.iter().find(|site| site.file == file) {
            return site;
        }
        let site: &'static CallSite = Box::leak(Box::new(CallSite {
            file: file.to_owned(),
            runs: Mutex::default(),
        }));
        sites.push(site);
        site
    }

    /// Adds a run that receives this plugin's faults.
    pub fn report_to(&self, faults: &Faults) {
        let faults = Arc::downgrade(&faults.0);
        let mut runs = locked(&self.runs);
        runs.retain(|run| run.strong_count() > 0);
        if !runs.iter().any(|run| run.ptr_eq(&faults)) {
            runs.push(faults);
        }
    }

    /// Reports a fault to the runs that use the plugin, and returns whether there are any.
    pub fn report(&self, message: &str) -> bool {
        let mut any = false;
        for faults in locked(&self.runs).iter().filter_map(Weak::upgrade) {
            Faults(faults).report(message.to_owned());
            any = true;
        }
        any
    }

    /// Calls a plugin function. This thread's slot records the call while it runs.
    #[inline]
    pub fn during<T>(&'static self, function: Function, call: impl FnOnce() -> T) -> T {
        let slot = own_slot();
        slot.function.store(function as usize, Ordering::Relaxed);
        slot.site
            .store(std::ptr::from_ref(self).cast_mut(), Ordering::Release);
        let result = call();
        let calls = slot.calls.load(Ordering::Relaxed);
        slot.calls.store(calls.wrapping_add(1), Ordering::Relaxed);
        slot.site.store(null_mut(), Ordering::Release);
        result
    }
}

/// The current call of one thread, which is the slot's only writer.
#[derive(Debug)]
pub(super) struct ThreadSlot {
    /// Kernel thread id; 0 while the slot is free.
    thread: AtomicI32,
    /// The plugin being called, or null.
    site: AtomicPtr<CallSite>,
    function: AtomicUsize,
    /// Number of completed calls.
    calls: AtomicU64,
    /// The slot created before this one.
    next: AtomicPtr<ThreadSlot>,
}

/// The latest slot.
static SLOTS: AtomicPtr<ThreadSlot> = AtomicPtr::new(null_mut());

thread_local! {
    /// This thread's slot. It has no destructor, so signal handlers can always read it.
    static OWN: Cell<Option<&'static ThreadSlot>> = const { Cell::new(None) };
    /// Frees the slot when the thread ends.
    static RELEASE: Release = const { Release };
}

struct Release;

impl Drop for Release {
    fn drop(&mut self) {
        // `exit` runs destructors first. A thread that ends inside a plugin call has therefore
        // called `exit`, and that call is examined later.
        if let Some(slot) = OWN.get()
            && slot.call().is_none()
        {
            OWN.set(None);
            slot.thread.store(0, Ordering::Release);
        }
    }
}

#[inline]
fn own_slot() -> &'static ThreadSlot {
    OWN.get().unwrap_or_else(take_slot)
}

/// Returns a free slot for this thread, or a new one.
#[cold]
fn take_slot() -> &'static ThreadSlot {
    let thread = thread_id();
    let free = slots().find(|slot| {
        let taken = slot
            .thread
            .compare_exchange(0, thread, Ordering::AcqRel, Ordering::Relaxed);
        taken.is_ok()
    });
    let slot = free.unwrap_or_else(|| new_slot(thread));
    OWN.set(Some(slot));
    // This only registers the destructor. If the thread is too close to its end for that, the slot
    // is never reused.
    let _ = RELEASE.try_with(|_| ());
    slot
}

fn new_slot(thread: i32) -> &'static ThreadSlot {
    let slot: &'static ThreadSlot = Box::leak(Box::new(ThreadSlot {
        thread: AtomicI32::new(thread),
        site: AtomicPtr::default(),
        function: AtomicUsize::new(0),
        calls: AtomicU64::new(0),
        next: AtomicPtr::new(SLOTS.load(Ordering::Acquire)),
    }));
    let new = std::ptr::from_ref(slot).cast_mut();
    let mut next = slot.next.load(Ordering::Relaxed);
    while let Err(other) =
        SLOTS.compare_exchange_weak(next, new, Ordering::AcqRel, Ordering::Acquire)
    {
        next = other;
        slot.next.store(next, Ordering::Relaxed);
    }
    slot
}

/// Returns all slots. Async-signal-safe.
pub(super) fn slots() -> impl Iterator<Item = &'static ThreadSlot> {
    let at = |slot: &AtomicPtr<ThreadSlot>| {
        let slot = slot.load(Ordering::Acquire);
        // SAFETY: the pointer is null or points to a slot that was leaked before it was published.
        unsafe { slot.as_ref() }
    };
    std::iter::successors(at(&SLOTS), move |slot| at(&slot.next))
}

/// Returns this thread's current call. Async-signal-safe.
pub(super) fn own_call() -> Option<Call> {
    OWN.try_with(Cell::get).ok().flatten()?.call()
}

/// Returns another thread's current call.
pub(crate) fn call_of(thread: i32) -> Option<Call> {
    let mut slots = slots().filter(|slot| slot.thread() == thread);
    slots.find_map(ThreadSlot::call)
}

/// Returns the caller's kernel thread id. Async-signal-safe.
pub(crate) fn thread_id() -> i32 {
    // Not `libc::gettid`: glibc has it only since 2.30, and the packages support glibc 2.17.
    // SAFETY: the call takes no arguments and accesses no memory of this process.
    unsafe { libc::syscall(libc::SYS_gettid) as i32 }
}

impl ThreadSlot {
    /// Returns the kernel thread id; 0 while the slot is free.
    pub fn thread(&self) -> i32 {
        self.thread.load(Ordering::Acquire)
    }

    /// Returns the thread's current call.
    pub fn call(&self) -> Option<Call> {
        let number = self.calls.load(Ordering::Relaxed);
        let site = self.site.load(Ordering::Acquire);
        let function = self.function.load(Ordering::Relaxed);
        // SAFETY: the pointer is null or points to a call site, which is never freed.
        let site = unsafe { site.as_ref() }?;
        Some(Call {
            site,
            function,
            number,
        })
    }
}

/// A running call. Equal observations belong to the same call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    site: &'static CallSite,
    function: usize,
    number: u64,
}

impl Call {
    /// Returns the plugin's path as given by the user.
    pub fn file(&self) -> &'static str {
        &self.site.file
    }

    /// Returns the function's name.
    pub fn function(&self) -> &'static str {
        NAMES.get(self.function).copied().unwrap_or("a function")
    }

    /// Returns whether the function is a run's hook, as opposed to the creation or destruction of a
    /// state.
    pub fn is_hook(&self) -> bool {
        use Function::{Create, Destroy, Load};
        ![Load, Create, Destroy]
            .map(|function| function as usize)
            .contains(&self.function)
    }

    /// Reports a fault in this call to the runs that use the plugin, and returns whether there are
    /// any.
    pub fn report(&self, what: &str) -> bool {
        self.site.report(&self.describe(what))
    }

    /// Returns a message about this call.
    pub fn describe(&self, what: &str) -> String {
        format!("plugin {}: {}: {what}", self.file(), self.function())
    }
}

impl PartialEq for Call {
    fn eq(&self, other: &Call) -> bool {
        std::ptr::eq(self.site, other.site)
            && (self.function, self.number) == (other.function, other.number)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_call_is_seen_by_others_while_it_lasts() {
        let site = CallSite::of("calls-test.so");
        assert!(std::ptr::eq(site, CallSite::of("calls-test.so")));
        let (begin, begun) = channel();
        let (end, ended) = channel::<()>();
        let thread = std::thread::spawn(move || {
            site.during(Function::Lose, || ());
            site.during(Function::Delay, || {
                begin.send((thread_id(), own_call())).expect("heard");
                ended.recv().expect("the end is signalled");
            });
            assert_eq!(own_call(), None);
        });
        let (id, own) = begun.recv().expect("it began");
        let call = call_of(id).expect("the thread is in a call");
        assert_eq!(Some(call), own);
        assert_eq!((call.file(), call.function()), ("calls-test.so", "delay"));
        assert!(call.is_hook());
        assert_eq!(call.describe("no"), "plugin calls-test.so: delay: no");
        assert_eq!(call_of(id), Some(call), "the same call");
        end.send(()).expect("heard");
        thread.join().expect("it ends");
        assert_eq!(call_of(id), None);
    }

    #[test]
    fn faults_go_to_the_runs_that_are_left() {
        let site = CallSite::of("faults-test.so");
        let (kept, gone) = (Faults::new(), Faults::new());
        site.report_to(&kept);
        site.report_to(&gone);
        site.report_to(&kept);
        drop(gone);
        assert!(site.report("broken"));
        assert_eq!(kept.first().as_deref(), Some("broken"));
        drop(kept);
        assert!(!site.report("broken"));
    }
}
