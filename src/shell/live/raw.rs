//! The terminal while a view owns it: every key is read as it is typed, and whatever ends the view puts all back.

use std::io::{self, Write};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::time::Duration;

use super::frame::Size;

/// The modes that were there before, and how the screen is left.
struct Before {
    modes: libc::termios,
    raw: libc::termios,
    leave: String,
    /// What SIGTSTP did, where the view has taken that.
    stops: Option<libc::sighandler_t>,
}

/// Of the one view that may be open. Here, so that a signal's thread and a panic can put it back.
static BEFORE: Mutex<Option<Before>> = Mutex::new(None);

/// SIGTSTP came while a view was open.
static STOP: AtomicBool = AtomicBool::new(false);

/// The terminal, until it is dropped.
pub(in crate::shell) struct Raw(());

impl Raw {
    /// Takes the terminal. `leave` is written when it is given back.
    ///
    /// # Errors
    /// Standard input is no terminal.
    pub(super) fn enter(leave: &str) -> io::Result<Self> {
        restore_on_panic();
        let modes = modes()?;
        let mut raw = modes;
        // SAFETY: cfmakeraw changes the struct that it is handed, and nothing else.
        unsafe { libc::cfmakeraw(&raw mut raw) };
        set(&raw)?;
        *lock() = Some(Before { modes, raw, leave: leave.to_string(), stops: take_stop() });
        Ok(Raw(()))
    }

    /// Leaves the terminal as it is, but nothing that is typed appears: it would stand in what is drawn.
    ///
    /// # Errors
    /// Standard input is no terminal.
    pub(in crate::shell) fn without_echo() -> io::Result<Self> {
        restore_on_panic();
        let modes = modes()?;
        let mut raw = modes;
        raw.c_lflag &= !(libc::ECHO | libc::ECHONL);
        set(&raw)?;
        *lock() = Some(Before { modes, raw, leave: String::new(), stops: None });
        Ok(Raw(()))
    }

    /// What is written when the terminal is given back.
    pub(super) fn leave_with(&self, leave: &str) {
        if let Some(before) = lock().as_mut() {
            before.leave = leave.to_string();
        }
    }

    /// Takes the terminal again where somebody else has changed its modes, such as a shell that put us into the foreground.
    /// Answers whether it was so.
    pub(super) fn take_again(&self) -> bool {
        let raw = lock().as_ref().map(|before| before.raw);
        match (raw, modes()) {
            (Some(raw), Ok(now)) if now.c_lflag != raw.c_lflag || now.c_iflag != raw.c_iflag => set(&raw).is_ok(),
            _ => false,
        }
    }

    /// Suspends this process as Ctrl-Z does; comes back in the foreground. `enter` is written then.
    pub(super) fn suspend(&self, leave: &str, enter: &str) -> io::Result<()> {
        let modes = lock().as_ref().map(|before| (before.modes, before.raw));
        write_all(leave.as_bytes())?;
        if let Some((before, raw)) = modes {
            set(&before)?;
            let stops = lock().as_ref().and_then(|before| before.stops);
            give_stop(stops);
            // SAFETY: raise has no conditions. It stops the process and returns when it goes on.
            unsafe { libc::raise(libc::SIGTSTP) };
            if stops.is_some() {
                take_stop();
            }
            set(&raw)?;
        }
        write_all(enter.as_bytes())
    }

    /// Whether somebody else has asked this process to stop, since this was asked last.
    pub(super) fn is_stop_asked(&self) -> bool {
        STOP.swap(false, Ordering::Relaxed)
    }

    /// The bytes that are typed within `time`; `None`: there will be no more.
    pub(super) fn read(&self, time: Duration) -> io::Result<Option<Vec<u8>>> {
        let mut poll = libc::pollfd { fd: libc::STDIN_FILENO, events: libc::POLLIN, revents: 0 };
        let millis = i32::try_from(time.as_millis()).unwrap_or(i32::MAX);
        // SAFETY: one valid pollfd is handed over, and its number.
        let ready = unsafe { libc::poll(&raw mut poll, 1, millis) };
        if ready == 0 {
            return Ok(Some(Vec::new()));
        }
        let mut bytes = [0u8; 1024];
        let read = match ready {
            // SAFETY: the buffer is as long as is said.
            1.. => unsafe { libc::read(libc::STDIN_FILENO, bytes.as_mut_ptr().cast(), bytes.len()) },
            _ => -1,
        };
        match usize::try_from(read) {
            Ok(0) => Ok(None),
            Ok(read) => Ok(Some(bytes[..read].to_vec())),
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => Ok(Some(Vec::new())),
                error => Err(error),
            },
        }
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        restore();
    }
}

/// Gives the terminal back as it was before the view; does nothing where none is open.
pub(in crate::shell) fn restore() {
    if let Some(before) = lock().take() {
        give_stop(before.stops);
        _ = write_all(before.leave.as_bytes());
        _ = set(&before.modes);
    }
}

extern "C" fn stop_asked(_: libc::c_int) {
    STOP.store(true, Ordering::Relaxed);
}

/// SIGTSTP waits until the terminal is given back; answers what it did. Where it is ignored, nobody could go on with us.
fn take_stop() -> Option<libc::sighandler_t> {
    // SAFETY: the handler only stores a flag; what it takes the place of is put back as it was answered.
    unsafe {
        let handler = stop_asked as extern "C" fn(libc::c_int);
        match libc::signal(libc::SIGTSTP, handler as libc::sighandler_t) {
            libc::SIG_ERR => None,
            libc::SIG_IGN => {
                libc::signal(libc::SIGTSTP, libc::SIG_IGN);
                None
            }
            before => Some(before),
        }
    }
}

fn give_stop(before: Option<libc::sighandler_t>) {
    if let Some(before) = before {
        // SAFETY: it is what was there before.
        unsafe { libc::signal(libc::SIGTSTP, before) };
    }
}

/// Whether something was typed that nobody has read yet.
pub(in crate::shell) fn is_anything_typed() -> bool {
    let mut poll = libc::pollfd { fd: libc::STDIN_FILENO, events: libc::POLLIN, revents: 0 };
    // SAFETY: one valid pollfd is handed over, and its number.
    unsafe { libc::poll(&raw mut poll, 1, 0) > 0 }
}

/// A panic's message is for the screen below the view.
fn restore_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let say = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            say(panic);
        }));
    });
}

/// Writes to the terminal, in one piece where it takes one.
pub(super) fn write_all(bytes: &[u8]) -> io::Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    // Not by lines, as standard output is written otherwise.
    let mut left = bytes;
    io::stdout().lock().flush()?;
    while !left.is_empty() {
        match rustix::io::write(io::stdout(), left) {
            Ok(written) => left = &left[written..],
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::AGAIN) => std::thread::sleep(Duration::from_millis(1)),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// The size of the terminal; 80 × 24 where it does not say.
pub(super) fn size() -> Size {
    let mut size = MaybeUninit::<libc::winsize>::zeroed();
    // SAFETY: a winsize of zeroes is valid, and the call fills it or leaves it.
    let size = unsafe {
        libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, size.as_mut_ptr());
        size.assume_init()
    };
    let or = |said: u16, otherwise| if said > 0 { usize::from(said) } else { otherwise };
    Size { columns: or(size.ws_col, 80), rows: or(size.ws_row, 24) }
}

fn modes() -> io::Result<libc::termios> {
    let mut modes = MaybeUninit::<libc::termios>::uninit();
    // SAFETY: tcgetattr fills the whole struct when it answers 0, and only then is it read.
    unsafe {
        match libc::tcgetattr(libc::STDIN_FILENO, modes.as_mut_ptr()) {
            0 => Ok(modes.assume_init()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

fn set(modes: &libc::termios) -> io::Result<()> {
    // SAFETY: the struct is one that tcgetattr filled.
    match unsafe { libc::tcsetattr(libc::STDIN_FILENO, libc::TCSADRAIN, &raw const *modes) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn lock() -> std::sync::MutexGuard<'static, Option<Before>> {
    BEFORE.lock().unwrap_or_else(PoisonError::into_inner)
}
